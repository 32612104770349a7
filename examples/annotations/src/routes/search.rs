use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};

use super::Service;
use crate::annotation::BadField;
use crate::problem::Problem;
use crate::search::{Ask, Found};

/// Finds annotations, the last changed first.
pub(super) async fn search(
    State(service): State<Service>,
    parameters: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<Found>, Problem> {
    let Query(parameters) = parameters.map_err(|_| BadField::new("query", "cannot be read"))?;
    let ask = Ask::read(parameters)?;
    Ok(Json(service.search.search(&ask).await?))
}
