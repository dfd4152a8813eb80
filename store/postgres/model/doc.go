// Package model contains only a test. It has Spin explore ledger.pml, a model of replicas that
// share one database, and checks that Spin finds the bugs that it puts into the model.
package model
