//! Every way to log in, on a real server that takes nobody else: TLS with an authority of its own, a certificate of the client, users,
//! tokens. The real binary, from `migrate` to a document that is searched.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use catchword::elastic::{Address, Answer, Certificate, Credentials, Elastic, Error, Maker, Transport};

use crate::common::{Server, World};

const PASSWORD: &str = "catchword-secret";
/// The password as the file realm keeps it.
const HASH: &str = "$2a$10$abcdefghijklmnopqrstuu2pZg1L11al5q/dA1pdTtjMa81VpnyjK";
/// A token of the service account elastic/fleet-server, and as the server keeps it.
const TOKEN: &str = "AAEAAWVsYXN0aWMvZmxlZXQtc2VydmVyL2NhdGNod29yZDo4aF9VNlFLbFJ1ZWVtaHlaLVJPQmp3";
const TOKEN_HASH: &str = "elastic/fleet-server/catchword:{PBKDF2_STRETCH}10000$WV3JQQHVoDTlO77+evNCmig3Kncn6Kg94Vy6Zl20ZAE=$59nw3IJc19N/azZHz8Qn/8PGxst3mfkMtsEDloidmRg=";

const SETTINGS: &str = "xpack.security.enabled=true xpack.security.http.ssl.enabled=true xpack.security.http.ssl.certificate=server.pem \
    xpack.security.http.ssl.key=server.key xpack.security.http.ssl.certificate_authorities=ca.pem \
    xpack.security.http.ssl.client_authentication=required";

/// An authority, and what it signed for a server on this machine and for a client.
struct Certificates(PathBuf);

impl Certificates {
    fn make(folder: PathBuf) -> Certificates {
        std::fs::create_dir_all(&folder).unwrap();
        let made = Certificates(folder);
        made.openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem");
        std::fs::write(made.path("server.ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n").unwrap();
        std::fs::write(made.path("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
        for name in ["server", "client"] {
            made.openssl(&format!("req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            let signed =
                format!("x509 -req -days 2 -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile {name}.ext -out {name}.pem");
            made.openssl(&signed);
        }
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn openssl(&self, words: &str) {
        let done = Command::new("openssl").args(words.split_whitespace()).current_dir(&self.0).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_login_works_on_a_server_that_takes_nobody_else_and_no_secret_is_printed() {
    let world = World::new().await;
    if world.catchword.elastic().engine().await.unwrap().maker == Maker::OpenSearch {
        // its test build knows neither TLS nor users
        return;
    }
    let certificates = Certificates::make(world.folder.join("tls"));
    let mut server = Server::start("").await;
    close(&mut server, &certificates).await;

    library(&server, &certificates).await;
    binary(&world, &server, &certificates);
}

/// From now on it wants TLS, a certificate and a login.
async fn close(server: &mut Server, certificates: &Certificates) {
    let conf = server.conf();
    let put = |name: &str, text: &[u8]| {
        std::fs::write(conf.join(name), text).unwrap();
        std::fs::set_permissions(conf.join(name), PermissionsExt::from_mode(0o644)).unwrap();
    };
    for name in ["ca.pem", "server.pem", "server.key"] {
        put(name, &std::fs::read(certificates.path(name)).unwrap());
    }
    put("users", format!("catchword:{HASH}\n").as_bytes());
    put("users_roles", b"superuser:catchword\n");
    put("service_tokens", format!("{TOKEN_HASH}\n").as_bytes());
    let path = |name: &str| certificates.path(name).display().to_string();
    server.ask_with(&format!("insecure\ncert = {}\nkey = {}\nuser = catchword:{PASSWORD}\n", path("client.pem"), path("client.key")));
    server.restart_with(SETTINGS).await;
}

async fn library(server: &Server, certificates: &Certificates) {
    let open = |credentials: Credentials, ca: Option<&str>, certificate: bool| {
        let address = Address::new(&server.url, credentials, ca.map(|name| certificates.path(name)), Transport::Verified).unwrap();
        let files = Certificate { certificate: certificates.path("client.pem"), key: certificates.path("client.key") };
        Elastic::open(&Address { certificate: certificate.then_some(files), ..address }).unwrap()
    };
    let basic = |password: &str| Credentials::Basic { username: "catchword".into(), password: password.into() };
    for credentials in [basic(PASSWORD), Credentials::Bearer(TOKEN.into())] {
        let elastic = open(credentials.clone(), Some("ca.pem"), true);
        let engine = elastic.engine().await.unwrap_or_else(|error| panic!("{credentials:?}: {error}"));
        assert_eq!(engine.maker, Maker::Elasticsearch);
        assert!(!format!("{elastic:?} {credentials:?}").contains(PASSWORD));
    }
    let refused = async |elastic: Elastic| match elastic.engine().await {
        Err(Error::Request { answer, .. }) => answer,
        other => panic!("{other:?}"),
    };
    for wrong in [basic("wrong"), Credentials::Bearer("AAEAAWVsYXN0aWMv".into()), Credentials::None] {
        let answer = refused(open(wrong.clone(), Some("ca.pem"), true)).await;
        assert!(matches!(answer, Answer::Denied(_)), "{wrong:?}: {answer}");
    }
    for (ca, certificate) in [(None, true), (Some("ca.pem"), false), (Some("client.pem"), true)] {
        let answer = refused(open(basic(PASSWORD), ca, certificate)).await;
        assert!(matches!(answer, Answer::Unreachable(_)), "{ca:?} {certificate}: {answer}");
    }
}

/// The whole way: the authority is one of the system's.
fn binary(world: &World, server: &Server, certificates: &Certificates) {
    let run = |words: &[&str], trusted: &str| -> Output {
        let mut command = world.binary();
        command.env("ELASTICSEARCH_URL", &server.url).env("ELASTICSEARCH_USERNAME", "catchword").env("ELASTICSEARCH_PASSWORD", PASSWORD);
        command.env("ELASTICSEARCH_CLIENT_CERT_FILE", certificates.path("client.pem"));
        command.env("ELASTICSEARCH_CLIENT_KEY_FILE", certificates.path("client.key"));
        command.env("SSL_CERT_FILE", certificates.path(trusted)).env("CATCHWORD_LOG", "debug");
        let output = command.as_std_mut().args(words).output().unwrap();
        let said = text(&output);
        assert!(!said.contains(PASSWORD) && !said.contains(&pem(&certificates.path("client.key"))), "{said}");
        output
    };
    let strange = run(&["migrate"], "client.pem");
    assert!(!strange.status.success() && text(&strange).contains("certificate"), "{}", text(&strange));
    for words in [&["migrate"][..], &["reindex", "annotation", "--all", "--yes"], &["sync", "--drain"], &["doctor"]] {
        let output = run(words, "ca.pem");
        // a reindex of nothing and a doctor with a warning end with 1
        assert!(output.status.code() < Some(2), "{words:?}: {}", text(&output));
    }
    let said = text(&run(&["doctor", "--all"], "ca.pem"));
    assert!(said.contains("is ours, has both aliases"), "{said}");
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The first line of a key.
fn pem(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().lines().nth(1).unwrap().to_owned()
}
