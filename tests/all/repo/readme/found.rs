async fn is_found(catchword: &Catchword, note: i64) -> Result<bool, Error> {
    let waited = catchword.wait_until("note", [note], Until::Searchable, Duration::from_secs(2)).await?;
    Ok(waited.iter().all(|key| key.has_come(Until::Searchable)))
}
