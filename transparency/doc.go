// Package transparency signs the checkpoints of the orgs' logs. It keeps the keys, which are
// never in the database, and refuses to sign what does not extend the last checkpoint. A new
// checkpoint is on disk before anybody sees it: after a crash, the log still extends it.
package transparency
