//! `catchword key create | list | revoke`

use serde_json::json;

use super::args::{Args, Key, KeyCreate, KeyList, KeyRevoke};
use super::{End, print_json, say, who};
use crate::Catchword;
use crate::api_key::{self, Listed, Request};
use crate::printable::{printable, shell_word};

pub(super) async fn run(args: &Args, words: &Key) -> anyhow::Result<End> {
    let catchword = args.open()?;
    super::check_database(&catchword).await?;
    match words {
        Key::Create(words) => create(&catchword, words).await,
        Key::List(words) => list(&catchword, words).await,
        Key::Revoke(words) => revoke(&catchword, words).await,
    }
}

async fn create(catchword: &Catchword, words: &KeyCreate) -> anyhow::Result<End> {
    // a name that is mistyped would make a key that sees nothing
    for name in words.collections.iter().flatten() {
        catchword.config().collection(Some(name))?;
    }
    let request = Request {
        name: words.name.clone(),
        role: words.role,
        collections: words.collections.clone(),
        rate: words.rate,
        expires: words.expires,
    };
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    let Some(text) = api_key::create(&mut connection, &request, &who()).await? else {
        let name = &words.name;
        eprintln!("catchword: there is a key {name} already; nothing was made; revoke it first: catchword key revoke {}", shell_word(name));
        return Ok(if words.unless_exists { End::Done } else { End::Not });
    };
    if words.json {
        print_json(&json!({ "name": words.name, "role": words.role, "key": text }))?;
    } else {
        // the key alone on standard output, so that a script can take it
        say(format_args!("{text}\n"))?;
        eprintln!("this is the only time that the key is shown; send it as: Authorization: Bearer {}…", api_key::PREFIX);
    }
    Ok(End::Done)
}

async fn list(catchword: &Catchword, words: &KeyList) -> anyhow::Result<End> {
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    let keys = api_key::list(&mut connection).await?;
    if words.json {
        print_json(&keys)?;
        return Ok(End::Done);
    }
    for key in &keys {
        say(format_args!("{}\n", one_line(key)))?;
    }
    if keys.is_empty() {
        say("there are no keys yet; make one with: catchword key create NAME --role reader\n")?;
    }
    Ok(End::Done)
}

fn one_line(key: &Listed) -> String {
    let collections = key.collections.as_ref().map_or("all collections".into(), |all| all.join(","));
    let used = key.last_used_at.map_or("never used".into(), |at| format!("last used {}", at.format("%Y-%m-%d %H:%M UTC")));
    let state = match (key.state.as_str(), key.revoked_at, key.expires_at) {
        ("revoked", Some(at), _) => {
            format!("revoked {} by {}", at.format("%Y-%m-%d %H:%M UTC"), printable(key.revoked_by.as_deref().unwrap_or("")))
        }
        ("expired", _, Some(at)) => format!("expired {}", at.format("%Y-%m-%d %H:%M UTC")),
        (_, _, Some(at)) => format!("until {}", at.format("%Y-%m-%d %H:%M UTC")),
        _ => "until it is revoked".into(),
    };
    format!(
        "{:<20} {:<8} {collections}, {}/s, made {} by {}, {used}, {state}",
        key.name,
        key.role,
        key.rate,
        key.created_at.format("%Y-%m-%d %H:%M UTC"),
        printable(&key.created_by)
    )
}

async fn revoke(catchword: &Catchword, words: &KeyRevoke) -> anyhow::Result<End> {
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    if api_key::revoke(&mut connection, &words.name, &who()).await? {
        say(format_args!("{} is revoked: it is refused from now on\n", words.name))?;
        return Ok(End::Done);
    }
    eprintln!("catchword: there is no key {} that is not revoked; list them: catchword key list", printable(&words.name));
    Ok(End::Not)
}
