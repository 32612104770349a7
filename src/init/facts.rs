//! What Postgres knows: the table, its columns, indexes and foreign keys, and those of the tables around it.

use std::collections::BTreeMap;

use sqlx::{Connection, FromRow, PgConnection};

use super::Wanted;
use super::names::{collection_name, view_names};
use crate::Error;

/// Everything that the choices are made from.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The table itself.
    pub table: Relation,
    /// The table, and those that a foreign key joins to it, by their ids.
    pub relations: BTreeMap<i64, Relation>,
    pub foreign_keys: Vec<ForeignKey>,
    /// Names in the table's schema that a view could have, and that something else has.
    pub taken: Vec<String>,
    /// The name of the collection.
    pub collection: String,
    /// The view that the caller chose, as SQL writes it.
    pub view: Option<String>,
    /// The column for the revision.
    pub revision: Named,
}

/// A name as Postgres has it, and as SQL writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Named {
    pub name: String,
    pub quoted: String,
}

#[derive(Clone, Debug, Default, FromRow)]
pub(super) struct Relation {
    pub id: i64,
    pub schema: String,
    pub name: String,
    pub quoted_schema: String,
    pub quoted_name: String,
    /// As in pg_class: `r` a plain table, `p` a partitioned one.
    pub kind: String,
    pub persistence: String,
    pub partition_of: Option<String>,
    pub inherits: bool,
    /// A policy hides rows from the role that asks.
    pub hides_rows: bool,
    /// The role that asks, as SQL writes it.
    pub reader: String,
    pub large: bool,
    /// Its own triggers that may change a row before it is written.
    pub triggers: Vec<String>,
    /// The collections that it is in already.
    pub collections: Vec<String>,
    #[sqlx(skip)]
    pub is_visible: bool,
    #[sqlx(skip)]
    pub columns: Vec<Column>,
    #[sqlx(skip)]
    pub indexes: Vec<Index>,
}

#[derive(Clone, Debug, Default, FromRow)]
pub(super) struct Column {
    pub name: String,
    pub quoted: String,
    /// As it was declared.
    pub type_name: String,
    /// What it comes down to without arrays and domains, by its name in pg_type.
    pub base: String,
    /// As pg_type.typtype: `b`, `e` for an enum, `c`, `r`, `m`.
    pub base_kind: String,
    /// As pg_type.typcategory: `S` is a string.
    pub category: String,
    pub is_array: bool,
    pub not_null: bool,
    pub is_generated: bool,
    pub length: Option<i32>,
    pub precision: Option<i32>,
    pub scale: Option<i32>,
    pub loose_collation: bool,
    pub description: String,
    /// The columns that it is generated from.
    pub made_of: Vec<String>,
}

/// An index that every row is in.
#[derive(Clone, Debug, Default, FromRow)]
pub(super) struct Index {
    pub is_primary: bool,
    /// Unique at once, not only at the end of a transaction.
    pub is_unique: bool,
    pub finds_equals: bool,
    /// An expression is an empty name.
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, Default, FromRow)]
pub(super) struct ForeignKey {
    pub relation: i64,
    pub refers_to: i64,
    pub columns: Vec<String>,
    pub referred: Vec<String>,
    /// How many rows have the same value, if the statistics know it.
    pub largest: Option<f64>,
}

impl Relation {
    /// As it is written in SQL and in the configuration.
    pub fn shown(&self) -> String {
        if self.schema == "public" && self.is_visible {
            self.quoted_name.clone()
        } else {
            format!("{}.{}", self.quoted_schema, self.quoted_name)
        }
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Does an index begin with this column?
    pub fn finds(&self, column: &str) -> bool {
        self.indexes.iter().any(|index| index.finds_equals && index.columns.first().is_some_and(|first| first == column))
    }

    /// No two rows have the same values of these columns.
    pub fn is_unique(&self, columns: &[String]) -> bool {
        let within = |index: &Index| index.columns.iter().all(|column| columns.contains(column));
        self.indexes.iter().any(|index| index.is_unique && within(index))
    }

    pub fn primary_key(&self) -> &[String] {
        let primary = self.indexes.iter().find(|index| index.is_primary && index.is_unique);
        primary.map_or(&[], |index| &index.columns)
    }
}

pub(super) async fn read(connection: &mut PgConnection, wanted: &Wanted) -> Result<Facts, Error> {
    let Some(id) = find(connection, &wanted.table).await? else {
        return Err(missing(connection, &wanted.table).await?);
    };
    let foreign_keys: Vec<ForeignKey> = sqlx::query_as(include_str!("foreign_keys.sql")).bind(id).fetch_all(&mut *connection).await?;
    let mut ids: Vec<i64> = foreign_keys.iter().flat_map(|key| [key.relation, key.refers_to]).chain([id]).collect();
    ids.sort_unstable();
    ids.dedup();
    let relations = relations(connection, &ids).await?;
    let table = relations.get(&id).cloned().ok_or(sqlx::Error::RowNotFound)?;
    let taken =
        sqlx::query_scalar(include_str!("taken.sql")).bind(&table.schema).bind(view_names(&table.name)).fetch_all(&mut *connection).await?;
    let collection = wanted.name.clone().unwrap_or_else(|| collection_name(&table.name));
    let name = wanted.revision.clone().unwrap_or_else(|| revision_name(&table, &collection));
    let (view, quoted): (Option<String>, String) =
        sqlx::query_as(include_str!("quoted.sql")).bind(&wanted.view).bind(&name).fetch_one(&mut *connection).await?;
    Ok(Facts { table, relations, foreign_keys, taken, collection, view, revision: Named { name, quoted } })
}

/// Each collection on a table has a column of its own.
fn revision_name(table: &Relation, collection: &str) -> String {
    let others = table.collections.iter().any(|other| other != collection);
    if others { format!("catchword_revision_{collection}") } else { "catchword_revision".to_owned() }
}

/// Names are looked up by the role's own path, and nothing else is done under it.
async fn find(connection: &mut PgConnection, name: &str) -> Result<Option<i64>, Error> {
    let mut savepoint = connection.begin().await?;
    sqlx::query(include_str!("../collection/path.sql")).execute(&mut *savepoint).await?;
    let found = sqlx::query_scalar(include_str!("find.sql")).bind(name).fetch_one(&mut *savepoint).await?;
    savepoint.rollback().await?;
    Ok(found)
}

async fn missing(connection: &mut PgConnection, name: &str) -> Result<Error, Error> {
    let similar: Vec<String> = sqlx::query_scalar(include_str!("similar.sql")).bind(name).fetch_all(connection).await?;
    let remedy = if similar.is_empty() {
        "write it as in SQL: table, schema.table, or '\"Table\"' if it has capitals; the database is that of DATABASE_URL".to_owned()
    } else {
        format!("did you mean '{}'?", similar.join("' or '"))
    };
    Ok(Error::refused_with(format!("there is no table {name}"), remedy))
}

async fn relations(connection: &mut PgConnection, ids: &[i64]) -> Result<BTreeMap<i64, Relation>, Error> {
    let found: Vec<Relation> = sqlx::query_as(include_str!("relations.sql")).bind(ids).fetch_all(&mut *connection).await?;
    let mut relations: BTreeMap<i64, Relation> = found.into_iter().map(|relation| (relation.id, relation)).collect();
    for row in sqlx::query(include_str!("columns.sql")).bind(ids).fetch_all(&mut *connection).await? {
        if let Some(relation) = relations.get_mut(&of(&row)?) {
            relation.columns.push(Column::from_row(&row)?);
        }
    }
    for row in sqlx::query(include_str!("indexes.sql")).bind(ids).fetch_all(&mut *connection).await? {
        if let Some(relation) = relations.get_mut(&of(&row)?) {
            relation.indexes.push(Index::from_row(&row)?);
        }
    }
    let mut savepoint = connection.begin().await?;
    sqlx::query(include_str!("../collection/path.sql")).execute(&mut *savepoint).await?;
    let visible: Vec<i64> = sqlx::query_scalar(include_str!("visible.sql")).bind(ids).fetch_all(&mut *savepoint).await?;
    savepoint.rollback().await?;
    for relation in relations.values_mut() {
        relation.is_visible = visible.contains(&relation.id);
    }
    Ok(relations)
}

/// The table that a row is about.
fn of(row: &sqlx::postgres::PgRow) -> Result<i64, sqlx::Error> {
    sqlx::Row::try_get(row, "relation")
}
