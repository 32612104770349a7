use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catchword::Stored;
use sqlx::PgConnection;

use super::{COLLECTION, Service, body, direct, json, no_annotation};
use crate::annotation::NewAnnotation;
use crate::problem::Problem;
use crate::store;

/// Saves an annotation. It is in the index when the answer comes if Elasticsearch is well, and
/// within a minute or as soon as it is well again if not.
pub(super) async fn create(State(service): State<Service>, request: Result<Bytes, BytesRejection>) -> Result<Response, Problem> {
    let new = NewAnnotation::read(&body(request)?)?;
    let kept = service
        .catchword
        .store_and_schedule(COLLECTION, async |tx: &mut PgConnection| {
            let id = store::insert(tx, &new).await?;
            let annotation = store::find(&mut *tx, id).await?.ok_or_else(|| no_annotation(id))?;
            Ok::<_, Problem>(Stored::new((id, annotation), [id]))
        })
        .await?;
    let (id, annotation) = kept.value;
    let location = [(header::LOCATION, format!("/api/annotations/{id}"))];
    Ok((location, direct(&kept.direct), json(StatusCode::CREATED, annotation)).into_response())
}
