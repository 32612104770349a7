//! Vectors: made from an array column, found by their nearest neighbours, compared as they were written. Some servers leave them out of what
//! they show, and all of them add to their mapping.

use std::path::PathBuf;

use catchword::elastic::{Address, Credentials, Elastic, Maker, Transport};
use serde_json::{Value, json};

use crate::common::{Layout, World};

const SQL: &str = "
create table picture (id bigint primary key, title text, embedding real[], exact float8[], catchword_revision bigint);
comment on column picture.catchword_revision is 'catchword: revision';
create view picture_document as
  select id as key, catchword_revision as revision, json_build_object('title', title, 'embedding', embedding, 'exact', exact) as body from picture;
";

/// Elasticsearch's own vectors; the test build of OpenSearch has none, and an array of numbers stands for them.
async fn world() -> (World, PathBuf, bool) {
    let address = Address::new(&std::env::var("ELASTICSEARCH_URL").unwrap(), Credentials::None, None, Transport::Verified).unwrap();
    let has_vectors = Elastic::open(&address).unwrap().engine().await.unwrap().maker == Maker::Elasticsearch;
    let vector = |dims: u32| if has_vectors { json!({ "type": "dense_vector", "dims": dims }) } else { json!({ "type": "float" }) };
    let suggested = json!({ "type": "text", "fields": { "suggest": { "type": "completion" } } });
    let mapping = json!({
        "settings": { "number_of_replicas": 0 },
        "mappings": { "properties": { "title": suggested, "embedding": vector(4), "exact": vector(3) } },
    });
    let path = std::env::temp_dir().join(format!("picture-{}.json", uuid::Uuid::new_v4().simple()));
    std::fs::write(&path, mapping.to_string()).unwrap();
    let names = "name = \"picture\"\ntable = \"picture\"\nkey = \"id\"\nview = \"picture_document\"\ndelay = \"0s\"";
    let more = format!("[[collection]]\n{names}\nmapping = \"{}\"\n", path.display());
    (World::with(Layout { more, sql: SQL.to_owned(), ..Layout::default() }).await, path, has_vectors)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_from_an_array_column_is_found_compared_and_no_drift() {
    let (world, path, has_vectors) = world().await;
    let catchword = &world.catchword;
    world
        .sql(
            "insert into picture (id, title, embedding, exact)
             select i, 'picture ' || i, array[sin(i), cos(i), sin(i * 0.37), 0.1], array[i / 3.0, sqrt(i), 1e-7 * i] from generate_series(1, 200) i",
        )
        .await;
    world.sql("insert into picture (id, title) values (1000, 'not looked at yet')").await;
    catchword.drain("test", &["picture"]).await.unwrap();
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'picture'").await, 0);
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 0);

    world.http("POST", &format!("/{}/_refresh", world.alias("picture")), None).await;
    if has_vectors {
        let vector: Vec<f32> = world.one("select embedding from picture where id = 42").await;
        let knn = json!({ "knn": { "field": "embedding", "query_vector": vector, "k": 1, "num_candidates": 50 }, "_source": false });
        let (status, found) = world.http("POST", &format!("/{}/_search", world.alias("picture")), Some(knn)).await;
        assert_eq!((status, found["hits"]["hits"][0]["_id"].as_str()), (200, Some("42")), "{found}");
    }

    // what the server adds to the mapping is neither a difference for doctor nor drift
    let (_, said, _) = world.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&said).unwrap();
    let lines = report["lines"].as_array().unwrap().iter().filter(|line| line["group"] == "picture index");
    let bad: Vec<&Value> = lines.filter(|line| line["level"] == "fail" || (line["what"] == "mapping" && line["level"] != "ok")).collect();
    assert!(bad.is_empty(), "{bad:?}");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    file["mappings"]["properties"]["lang"] = json!({ "type": "keyword" });
    std::fs::write(&path, file.to_string()).unwrap();
    let config = catchword.config().collection(Some("picture")).unwrap();
    assert_eq!(catchword.drift(config).await.unwrap().due().as_deref(), Some("the mapping file has new fields (lang): catchword migrate"));

    // every document is as it was written, vectors included
    let (code, said, errors) = world.run(&["audit", "picture", "--content"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    // and one that is not is found: another vector under the same version
    let version = world.version("picture", "7").await.unwrap();
    let source = world.one::<Value>("select body from picture_document where key = 7").await;
    let mut other = source.clone();
    other["embedding"] = json!([0.5, 0.5, 0.5, 0.5]);
    let action = json!({ "index": { "_id": "7", "version": version, "version_type": "external_gte" } });
    let (_, answer) = world.http_text("POST", &format!("/{}/_bulk", world.index("picture")), Some(format!("{action}\n{other}\n"))).await;
    assert_eq!(answer["errors"], false, "{answer}");
    let (code, said, errors) = world.run(&["audit", "picture", "--content", "--repair"]).await;
    assert!(code == 1 && said.contains("embedding"), "{said}{errors}");
    catchword.drain("test", &["picture"]).await.unwrap();
    let (code, said, errors) = world.run(&["audit", "picture", "--content"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    std::fs::remove_file(path).unwrap();
}
