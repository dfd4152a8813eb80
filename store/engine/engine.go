// Package engine holds what the database engines have in common: the writer with its queue, the
// lanes of readers, and the health. It knows no SQL but that of savepoints.
package engine
