//! Counts what a process asks of Postgres. A test uses it too, so that both count the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A way to the database on which statements are counted, `begin` and `commit` too.
pub async fn counted(database_url: &str) -> anyhow::Result<(String, Arc<AtomicU64>)> {
    let mut url = url::Url::parse(database_url)?;
    let server = format!("{}:{}", url.host_str().unwrap_or("127.0.0.1"), url.port().unwrap_or(5432));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    url.set_host(Some("127.0.0.1"))?;
    url.set_port(Some(listener.local_addr()?.port())).map_err(|()| anyhow::anyhow!("no port"))?;
    url.set_query(Some("sslmode=disable"));
    let queries = Arc::new(AtomicU64::new(0));
    let counter = queries.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, server.clone(), counter.clone()));
        }
    });
    Ok((url.to_string(), queries))
}

async fn carry(client: TcpStream, server: String, queries: Arc<AtomicU64>) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.into_split(), server.into_split());
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    // the first message has no letter
    let mut length = [0; 4];
    from_client.read_exact(&mut length).await?;
    pass_on(&mut from_client, &mut to_server, &[], length).await?;
    loop {
        let (mut letter, mut length) = ([0; 1], [0; 4]);
        from_client.read_exact(&mut letter).await?;
        from_client.read_exact(&mut length).await?;
        // a simple query, or the execution of a prepared one
        if matches!(letter[0], b'Q' | b'E') {
            queries.fetch_add(1, Ordering::Relaxed);
        }
        pass_on(&mut from_client, &mut to_server, &letter, length).await?;
    }
}

async fn pass_on(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    letter: &[u8],
    length: [u8; 4],
) -> std::io::Result<()> {
    let mut rest = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    from.read_exact(&mut rest).await?;
    to.write_all(&[letter, &length, &rest].concat()).await
}
