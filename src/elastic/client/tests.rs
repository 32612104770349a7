//! A scripted server, for what a real one cannot be made to do: break a connection, stay silent, cut an answer short.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::elastic::{Body, Has, Refresh, Target, Write};

const LIMIT: Duration = Duration::from_secs(5);

/// What the server does with one request.
enum Act {
    Answer(&'static str),
    Close,
    Stay,
}

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 61\r\n\r\n{\"version\":{\"number\":\"9.4.3\",\"build_flavor\":\"default\",\"x\":1}}";
const HTML: &str = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\nnope";
const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"items\":[]}";

/// Serves one act per connection, and keeps what was asked.
async fn serve(acts: Vec<Act>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let recorded = asked.clone();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        for act in acts {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            recorded.lock().unwrap().push(request);
            match act {
                Act::Answer(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                Act::Close => {}
                Act::Stay => silent.push(stream),
            }
        }
        std::future::pending::<()>().await;
    });
    (url, asked)
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part).await.unwrap();
        request.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn open(url: &str, credentials: Credentials) -> Elastic {
    Elastic::open(&Address::new(url, credentials, None, Transport::Verified).unwrap()).unwrap()
}

async fn bulk(elastic: &Elastic, limit: Duration) -> Answer {
    let write = Write { key: "a", version: 2, body: Body::Tombstone };
    elastic.bulk(&Target::new("annotation-000001"), &[write], Refresh::No, limit).await.remove(0)
}

#[tokio::test]
async fn a_broken_connection_is_tried_once_more_and_not_twice() {
    let (url, asked) = serve(vec![Act::Close, Act::Answer(HELLO)]).await;
    assert_eq!(open(&url, Credentials::None).engine().await.unwrap().to_string(), "Elasticsearch 9.4.3");
    assert_eq!(asked.lock().unwrap().len(), 2);

    let (url, asked) = serve(vec![Act::Close, Act::Close, Act::Answer(HELLO)]).await;
    assert!(matches!(bulk(&open(&url, Credentials::None), LIMIT).await, Answer::Unreachable(_)));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let elastic = open(&url, Credentials::None);
    let answer = bulk(&elastic, LIMIT).await;
    assert!(matches!(&answer, Answer::Unreachable(why) if why.contains("refused")), "{answer}");
    let looked = elastic.look(&Target::new("annotation-000001"), &["a"], LIMIT).await;
    assert!(matches!(looked, Err(Answer::Unreachable(_))), "{looked:?}");
}

#[tokio::test]
async fn no_answer_in_time_is_unknown_and_not_asked_again() {
    let (url, asked) = serve(vec![Act::Stay, Act::Stay]).await;
    let elastic = open(&url, Credentials::None);
    let answer = bulk(&elastic, Duration::from_millis(100)).await;
    assert_eq!(answer, Answer::Unknown("no answer in time".to_owned()));
    assert_eq!(asked.lock().unwrap().len(), 1);
    let answer = bulk(&elastic, Duration::ZERO).await;
    assert_eq!(answer, Answer::Unknown("not sent, no time was left".to_owned()));
}

#[tokio::test]
async fn an_answer_that_is_cut_or_not_elasticsearchs_is_unknown() {
    let (url, _) = serve(vec![Act::Answer(CUT), Act::Answer(HTML), Act::Answer(HELLO), Act::Answer(HELLO)]).await;
    let elastic = open(&url, Credentials::None);
    let cut = bulk(&elastic, LIMIT).await;
    assert_eq!(cut, Answer::Unknown("the answer was cut short".to_owned()));
    let html = bulk(&open(&url, Credentials::None), LIMIT).await;
    assert_eq!(html, Answer::Unknown("status 502".to_owned()));
    let other = bulk(&open(&url, Credentials::None), LIMIT).await;
    assert!(matches!(other, Answer::Unknown(_)), "{other}");
    let looked = open(&url, Credentials::None).look(&Target::new("x"), &["a"], LIMIT).await;
    assert!(!matches!(looked, Ok(has) if has.contains(&Has::Absent)));
}

#[tokio::test]
async fn credentials_are_sent_and_never_shown() {
    let key = Credentials::ApiKey("VnVhQ2ZHY0J6".to_owned());
    let basic = Credentials::Basic { username: "eva".to_owned(), password: "p@ss".to_owned() };
    let bearer = Credentials::Bearer("AAEAAWVsYXN0aWM6".to_owned());
    for (credentials, header) in [
        (key, "authorization: ApiKey VnVhQ2ZHY0J6"),
        (basic, "authorization: Basic ZXZhOnBAc3M="),
        (bearer, "authorization: Bearer AAEAAWVsYXN0aWM6"),
    ] {
        let (url, asked) = serve(vec![Act::Answer(HTML)]).await;
        let elastic = open(&url, credentials);
        bulk(&elastic, LIMIT).await;
        let request = asked.lock().unwrap().remove(0);
        assert!(request.lines().any(|line| line.eq_ignore_ascii_case(header)), "{request}");
        assert!(request.starts_with("POST /annotation-000001-write/_bulk?require_alias=true&timeout=5s&"), "{request}");
        assert!(request.contains("content-type: application/x-ndjson\r\n"), "{request}");
        assert_eq!(format!("{elastic:?}"), format!("Elastic(\"{url}/\")"));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_named() {
    let (elsewhere, seen) = serve(vec![Act::Answer(HELLO)]).await;
    let head = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://eva:secret@{}/_bulk?token=x\r\n", &elsewhere[7..]);
    let answer: &'static str = Box::leak(format!("{head}content-length: 0\r\n\r\n").into_boxed_str());
    let (url, asked) = serve(vec![Act::Answer(answer)]).await;
    let answer = bulk(&open(&url, Credentials::None), LIMIT).await;
    assert!(matches!(&answer, Answer::Unreachable(why) if why.contains(&elsewhere) && why.contains("ELASTICSEARCH_URL")), "{answer}");
    assert!(!answer.to_string().contains("secret") && !answer.to_string().contains("token"), "{answer}");
    assert_eq!((asked.lock().unwrap().len(), seen.lock().unwrap().len()), (1, 0));
}

/// An address that nobody listens at.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn open_nodes(urls: &[&str]) -> Elastic {
    Elastic::open(&Address::of_nodes(urls.iter().copied(), Credentials::None, None, Transport::Verified).unwrap()).unwrap()
}

#[tokio::test]
async fn the_next_node_is_asked_when_one_is_down_and_stays_the_one_that_is_asked() {
    let (url, asked) = serve(vec![Act::Answer(HELLO), Act::Answer(HTML)]).await;
    let elastic = open_nodes(&[&nobody().await, &nobody().await, &url]);
    assert_eq!(elastic.engine().await.unwrap().to_string(), "Elasticsearch 9.4.3");
    assert_eq!(elastic.nodes.asked(), 2);
    assert_eq!(bulk(&elastic, LIMIT).await, Answer::Unknown("status 502".to_owned()));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn each_node_is_asked_once_when_all_are_down() {
    let (broken, asked) = serve(vec![Act::Close, Act::Close, Act::Close]).await;
    let elastic = open_nodes(&[&nobody().await, &nobody().await]);
    let answer = bulk(&elastic, LIMIT).await;
    assert!(matches!(&answer, Answer::Unreachable(why) if why.starts_with("no connection to any of 2 nodes")), "{answer}");
    let elastic = open_nodes(&[&broken, &nobody().await]);
    assert!(matches!(bulk(&elastic, LIMIT).await, Answer::Unreachable(_)));
    assert!(asked.lock().unwrap().len() <= 2, "a connection that broke is tried once more, and not more often");
}

#[tokio::test]
async fn after_a_node_that_stays_silent_the_next_request_goes_to_another() {
    let (silent, asked) = serve(vec![Act::Stay, Act::Stay]).await;
    let (well, answered) = serve(vec![Act::Answer(HTML)]).await;
    let elastic = open_nodes(&[&silent, &well]);
    assert_eq!(bulk(&elastic, Duration::from_millis(100)).await, Answer::Unknown("no answer in time".to_owned()));
    assert_eq!((asked.lock().unwrap().len(), answered.lock().unwrap().len()), (1, 0), "it may have landed: it is not sent again");
    assert_eq!(bulk(&elastic, LIMIT).await, Answer::Unknown("status 502".to_owned()));
    assert_eq!((asked.lock().unwrap().len(), answered.lock().unwrap().len()), (1, 1));
}
