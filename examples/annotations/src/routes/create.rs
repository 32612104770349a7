use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use catchword::Stored;
use sqlx::PgConnection;
use uuid::Uuid;

use super::wait::{Wait, is_searchable};
use super::{COLLECTION, Service, body, direct, json, no_annotation};
use crate::annotation::{BadField, NewAnnotation};
use crate::problem::Problem;
use crate::store::{self, Claim};

/// The longest key, in bytes; the table checks the same.
const MAX_KEY_BYTES: usize = 255;
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Saves an annotation. It is in the index when the answer comes if Elasticsearch is well, and
/// within a minute or as soon as it is well again if not. A request that is repeated under its key
/// saves nothing, and gets what was saved.
pub(super) async fn create(
    State(service): State<Service>,
    parameters: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
    request: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let (wait, key) = (Wait::read(parameters)?, key(&headers)?);
    let new = NewAnnotation::read(&body(request)?)?;
    let kept = service
        .catchword
        .store_and_schedule(COLLECTION, async |tx: &mut PgConnection| {
            let (id, status) = save(tx, key, &new).await?;
            let annotation = store::find(&mut *tx, id).await?.ok_or_else(|| no_annotation(id))?;
            Ok::<_, Problem>(Stored::new((id, status, annotation), [id]))
        })
        .await?;
    let (id, status, annotation) = kept.value;
    let annotation = match wait {
        Wait::No => annotation,
        Wait::Searchable => with_searchable(annotation, is_searchable(&service.catchword, id).await),
    };
    let location = [(header::LOCATION, format!("/api/annotations/{id}"))];
    Ok((location, direct(&kept.direct), json(status, annotation)).into_response())
}

/// Saves it, unless it was saved under the same key before.
async fn save(tx: &mut PgConnection, key: Option<&str>, new: &NewAnnotation) -> Result<(Uuid, StatusCode), Problem> {
    let id = Uuid::new_v4();
    let claim = match key {
        Some(key) => store::claim_key(tx, key, new, id).await?,
        None => Claim::New,
    };
    match claim {
        Claim::New => {
            store::insert(tx, id, new).await?;
            Ok((id, StatusCode::CREATED))
        }
        Claim::Saved(saved) => Ok((saved, StatusCode::OK)),
        Claim::Taken => Err(Problem::KeyTaken),
    }
}

/// What the client calls this request, if it does.
fn key(headers: &HeaderMap) -> Result<Option<&str>, BadField> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (given.next().map(|key| key.to_str()), given.next()) {
        (None, _) => Ok(None),
        (Some(Ok(key)), None) if (1..=MAX_KEY_BYTES).contains(&key.len()) => Ok(Some(key)),
        _ => Err(BadField::new(IDEMPOTENCY_KEY, format!("must be one header of 1 to {MAX_KEY_BYTES} ASCII letters, for instance a uuid"))),
    }
}

/// One field more in JSON that Postgres has built.
fn with_searchable(annotation: String, is_searchable: bool) -> String {
    match annotation.trim_end().strip_suffix('}') {
        Some(fields) => format!("{fields}, \"searchable\" : {is_searchable}}}"),
        None => annotation,
    }
}
