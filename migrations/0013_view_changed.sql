-- A view that changed and changed back left documents of the definition in between. Once another definition was seen, nobody knows any more
-- what documents were built with, until all of them are written anew.
create function catchword.note_view_changed(p_collection text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.collection set filled_view = null
   where name = p_collection and filled_view is not null and not catchword.same_view(filled_view, catchword.view_digest(view))
$$;
comment on function catchword.note_view_changed is 'remembers that documents may have been built with another definition of the view than now';
comment on column catchword.collection.filled_view is 'digest of the definition of the view that all documents were built with; null: of several, until reindex --all --anew';

revoke execute on all functions in schema catchword from public;
