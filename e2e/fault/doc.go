// Package fault contains only tests. They put the real binary under a mixed load, do
// something to it, and check that it has kept every record that it confirmed, and none
// that it refused. docs/reliability.md has the figures of the long version:
//
//	LEDGERD_TEST_LEVEL=full go test ./e2e/fault -v -timeout 30m
//
// TestFaultReplicas uses PostgreSQL. The other tests break what SQLite needs: files, disks and the
// clock of the host. Package cmd kills and stops servers on both engines.
package fault
