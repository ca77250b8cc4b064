"""The late ledger: row events that arrived after the cut that covers their commit ts (docs/architecture.md 7).

exact replay   an equal event was published: nothing to do
conflict       another event of the same row and commit ts was published: one of the two is wrong
truly late     no event of that row and commit ts was published: the tables lack it

Conflicts and truly late rows are stored in a table of their own; replays are only counted. Events are compared as they were sent, by table
name, commit ts and cells, with the published events as the events table had them at that time. An update equals its split delete and
insert: the row after it and the key that a delete frees are compared separately. Equal rows of a table without a key are counted by
replay_epoch. Avro deletes have no commit ts and are not judged here.
"""
