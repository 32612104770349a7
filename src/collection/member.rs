//! The tables of a collection: one, as a rule, or the same table in many schemas. Whoever reads goes from member to member, so that a
//! statement never locks the tables of all schemas at once.

use super::key::unescaped;
use super::statements::Statements;
use super::{Collection, Keys};
use crate::Error;
use crate::config;

/// Schemas that are named where some are not served; of more only the number.
const NAMED: usize = 3;

/// A table and its view.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its schema, the first part of its keys, where a collection has many.
    pub schema: Option<String>,
    /// Why it cannot be served, where others can. Nothing is known of its keys then.
    pub problem: Option<String>,
    /// The quoted name of the table.
    pub table: String,
    /// The quoted name of the view.
    pub view: String,
    pub statements: Statements,
}

impl Member {
    /// The table and the view, as a person calls them: as they were written, unless that means many.
    pub fn said<'m>(&'m self, config: &'m config::Collection) -> (&'m str, &'m str) {
        match self.schema {
            None => (&config.table, &config.view),
            Some(_) => (&self.table, &self.view),
        }
    }
}

impl Collection {
    /// Keys by the member that has their rows. A schema that there is no more has none: any member knows as much of its keys. Those of one
    /// that cannot be served are left out.
    pub(super) fn by_member<'k>(&self, keys: &[&'k str]) -> Vec<(&Member, Vec<&'k str>)> {
        if let [only] = &self.members[..]
            && only.problem.is_none()
        {
            return vec![(only, keys.to_vec())];
        }
        let mut groups: Vec<(&Member, Vec<&'k str>)> = self.members.iter().map(|member| (member, Vec::new())).collect();
        for key in keys {
            let at = self.members.binary_search_by(|member| member.schema.as_deref().cmp(&Some(&*schema_in(key)))).unwrap_or(0);
            if let Some((_, group)) = groups.get_mut(at) {
                group.push(*key);
            }
        }
        groups.retain(|(member, keys)| !keys.is_empty() && member.problem.is_none());
        groups
    }

    /// Keys of schemas that cannot be served: nothing is known of them, and above all not that they have no row.
    pub(super) fn of_unserved(&self, keys: &[&str]) -> Vec<String> {
        let unserved: Vec<&str> =
            self.members.iter().filter(|member| member.problem.is_some()).filter_map(|member| member.schema.as_deref()).collect();
        if unserved.is_empty() {
            return Vec::new();
        }
        keys.iter().filter(|key| unserved.contains(&&*schema_in(key))).map(|key| (*key).to_owned()).collect()
    }

    /// The member that a walk is in, and the key behind which it goes on there. A cursor is the last key, or a schema with nothing behind
    /// the slash: then that one begins. None: there is no member left.
    pub(super) fn at_cursor<'c>(&self, cursor: Option<&'c str>) -> Option<(usize, Option<&'c str>)> {
        let Some(cursor) = cursor.filter(|_| self.has_schemas()) else {
            return self.members.iter().position(|member| member.problem.is_none()).map(|at| (at, cursor));
        };
        let schema = schema_in(cursor);
        let served = |member: &Member| member.problem.is_none() && member.schema.as_deref() >= Some(&*schema);
        let at = self.members.iter().position(served)?;
        let is_there = self.members.get(at).is_some_and(|member| member.schema.as_deref() == Some(&*schema));
        Some((at, Some(cursor).filter(|cursor| is_there && !cursor.ends_with('/'))))
    }

    /// Where a walk goes on that has come to the end of a member.
    pub(super) fn behind(&self, at: usize, page: Keys) -> Keys {
        let mut behind = self.members.iter().skip(at + 1).filter(|member| member.problem.is_none());
        let next = behind.next().and_then(|member| member.schema.as_deref());
        Keys { last: page.last.or_else(|| next.map(|schema| format!("{}/", super::key::escaped(schema)))), ..page }
    }

    /// Is it one table in many schemas?
    pub fn has_schemas(&self) -> bool {
        self.members.iter().any(|member| member.schema.is_some())
    }

    /// The schemas that are taken in, where it has many.
    pub fn schemas(&self) -> Vec<&str> {
        self.members.iter().filter_map(|member| member.schema.as_deref()).collect()
    }

    /// Why some of its schemas are not served, where others are.
    pub fn not_served(&self) -> Option<String> {
        let faulty = self.members.iter().filter_map(|member| Some((member.schema.as_deref()?, member.problem.as_deref()?)));
        let faulty: Vec<String> = faulty.map(|(schema, problem)| format!("schema {schema}: {problem}")).collect();
        let others = match faulty.len().saturating_sub(NAMED) {
            0 => String::new(),
            1 => "; and 1 other schema".into(),
            n => format!("; and {n} other schemas"),
        };
        (!faulty.is_empty()).then(|| format!("{}{others}", faulty.into_iter().take(NAMED).collect::<Vec<_>>().join("; ")))
    }

    /// Why nothing is known of a key's row: its schema cannot be served, or is not one of the collection's. None: it is served.
    pub fn schema_not_served(&self, key: &str) -> Option<String> {
        let schema = schema_in(key);
        match self.members.iter().find(|member| member.schema.as_deref() == Some(&*schema)) {
            _ if !self.has_schemas() => None,
            None => Some(format!("{schema} is none of {}: it does not exist, or catchword migrate has not taken it in", self.name)),
            Some(member) => member.problem.as_ref().map(|problem| format!("{schema} is not served: {problem}")),
        }
    }

    /// The member of a schema, or the only one.
    pub(super) fn member(&self, schema: Option<&str>) -> Result<&Member, Error> {
        let found = self.members.iter().find(|member| member.schema.as_deref() == schema);
        found.ok_or_else(|| Error::refused(format!("collection {} has no such schema", self.name)))
    }
}

/// The schema in a key of a collection over many.
pub(crate) fn schema_in(key: &str) -> String {
    unescaped(key.split('/').next().unwrap_or(key))
}
