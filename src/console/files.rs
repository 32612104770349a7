//! The stylesheet, the script and the sign of the page, in the binary. Their names change with their contents, so that a browser may
//! keep them for a year.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A file that never changes under its name.
struct File {
    name: String,
    kind: &'static str,
    bytes: &'static [u8],
}

static STYLE: LazyLock<File> =
    LazyLock::new(|| File::of("console", "css", "text/css; charset=utf-8", include_bytes!("static/console.css")));
static SCRIPT: LazyLock<File> =
    LazyLock::new(|| File::of("console", "js", "text/javascript; charset=utf-8", include_bytes!("static/console.js")));
static ICON: LazyLock<File> = LazyLock::new(|| File::of("icon", "svg", "image/svg+xml", include_bytes!("static/icon.svg")));

impl File {
    fn of(name: &str, extension: &str, kind: &'static str, bytes: &'static [u8]) -> File {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        File { name: format!("{name}-{:016x}.{extension}", hasher.finish()), kind, bytes }
    }
}

/// The names, for the pages.
#[derive(Clone, Copy)]
pub(super) struct Files {
    pub style: &'static str,
    pub script: &'static str,
    pub icon: &'static str,
}

pub(super) fn files() -> Files {
    Files { style: &STYLE.name, script: &SCRIPT.name, icon: &ICON.name }
}

/// Anybody may have them: the page to sign in needs them too.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    let found = [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|file| file.name == name);
    match found {
        Some(file) => {
            let headers = [(header::CONTENT_TYPE, file.kind), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
            (headers, file.bytes).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    }
}
