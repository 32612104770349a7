async fn save(catchword: &Catchword, author: &str, text: &str) -> Result<i64, Error> {
    let kept = catchword
        .store_and_schedule("note", async |tx: &mut PgConnection| {
            let id: i64 = sqlx::query_scalar("insert into note (author, text) values ($1, $2) returning id")
                .bind(author)
                .bind(text)
                .fetch_one(tx)
                .await?;
            Ok::<_, Error>(Stored::new(id, [id]))
        })
        .await?;
    if let Direct::Left(why) = kept.direct {
        println!("saved; searchable in a minute or two: {why}");
    }
    Ok(kept.value)
}
