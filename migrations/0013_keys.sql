-- API keys: who may ask `catchword serve` for what. The key itself is shown once, when it is made, and is nowhere after
-- that: here is its SHA-256. A key has 256 random bits, so nobody finds it by trying, and no slow hash is needed.
create table catchword.api_key (
  id           text primary key constraint api_key_id_is_hex check (id ~ '^[0-9a-f]{12}$'),
  name         text not null
               constraint api_key_name_is_a_word check (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$'),
  digest       bytea not null constraint api_key_digest_is_sha256 check (octet_length(digest) = 32),
  role         text not null
               constraint api_key_role_is_known check (role in ('reader', 'writer', 'operator', 'admin')),
  collections  text[] constraint api_key_collections_are_some check (collections <> '{}'),
  rate         integer not null constraint api_key_rate_is_sensible check (rate between 1 and 100000),
  created_at   timestamptz not null default now(),
  created_by   text not null,
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz,
  revoked_by   text
);
comment on table  catchword.api_key is 'who may ask catchword serve for what';
comment on column catchword.api_key.id is 'the part of a key that names it; no secret';
comment on column catchword.api_key.name is 'what people call it, and what the journal says';
comment on column catchword.api_key.digest is 'the SHA-256 of the whole key';
comment on column catchword.api_key.role
  is 'reader: looks; writer: schedules; operator: acts; admin: what cannot be undone';
comment on column catchword.api_key.collections is 'the only collections it may see; null: all';
comment on column catchword.api_key.rate is 'requests a second, at most';
comment on column catchword.api_key.created_at is 'when it was made';
comment on column catchword.api_key.created_by is 'by whom';
comment on column catchword.api_key.expires_at is 'from here on it is refused; null: never';
comment on column catchword.api_key.last_used_at is 'when it was last used, to the minute';
comment on column catchword.api_key.revoked_at is 'from here on it is refused';
comment on column catchword.api_key.revoked_by is 'by whom';
-- A name is free again when its key is revoked; the old row stays for the journal's sake.
create unique index api_key_name on catchword.api_key (name) where revoked_at is null;

create function catchword.create_key(
  p_id text, p_name text, p_digest bytea, p_role text, p_collections text[], p_rate integer, p_expires interval,
  p_who text default null
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into catchword.api_key (id, name, digest, role, collections, rate, created_by, expires_at)
  values (p_id, p_name, p_digest, p_role, p_collections, p_rate, catchword.who(p_who), now() + p_expires)
  on conflict (name) where revoked_at is null do nothing;
  if not found then
    return false;
  end if;
  insert into catchword.journal (who, what, detail)
  values (catchword.who(p_who), 'key create',
          format('%s, %s%s', p_name, p_role, ' of ' || array_to_string(p_collections, ', ')));
  return true;
end $$;
comment on function catchword.create_key is 'keeps a new API key; false: a key of that name is there';

create function catchword.revoke_key(p_name text, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update catchword.api_key set revoked_at = now(), revoked_by = catchword.who(p_who)
   where name = p_name and revoked_at is null;
  if not found then
    return false;
  end if;
  insert into catchword.journal (who, what, detail) values (catchword.who(p_who), 'key revoke', p_name);
  return true;
end $$;
comment on function catchword.revoke_key is 'refuses an API key from now on; false: there is none of that name';

-- Without the digests: nobody has to see them but whoever compares.
create function catchword.keys() returns table (
  id text, name text, role text, collections text[], rate integer, created_at timestamptz, created_by text,
  expires_at timestamptz, last_used_at timestamptz, revoked_at timestamptz, revoked_by text, state text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select k.id, k.name, k.role, k.collections, k.rate, k.created_at, k.created_by, k.expires_at, k.last_used_at,
         k.revoked_at, k.revoked_by,
         case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'live' end
    from catchword.api_key k order by k.revoked_at is not null, k.name, k.id
$$;
comment on function catchword.keys is 'the API keys, without their digests';

-- One row, by the part of a key that is no secret. Whoever asks compares the digest, and looks at the state.
create function catchword.find_key(p_id text) returns table (
  id text, name text, digest bytea, role text, collections text[], rate integer, state text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select k.id, k.name, k.digest, k.role, k.collections, k.rate,
         case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'live' end
    from catchword.api_key k where k.id = p_id
$$;
comment on function catchword.find_key is 'an API key by its id, with its digest, for catchword serve';

create function catchword.has_keys() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from catchword.api_key where revoked_at is null and (expires_at is null or expires_at > now()))
$$;
comment on function catchword.has_keys is 'is there an API key that is neither revoked nor expired?';

create function catchword.note_key_used(p_id text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.api_key set last_used_at = now()
   where id = p_id and (last_used_at is null or last_used_at < now() - interval '1 minute')
$$;
comment on function catchword.note_key_used is 'remembers when an API key was last used, to the minute';

revoke execute on all functions in schema catchword from public;
