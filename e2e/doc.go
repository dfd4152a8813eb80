// Package e2e contains only tests. They run the real binary against programs
// that users have: curl, nginx, a browser, Node.js, Python. Package testenv
// decides which of them run.
//
// The folder fault has tests with a mixed load, which check the database file after
// each fault; see its documentation for the long version.
//
// To generate a Go client from openapi.yaml, compile it and use it:
//
//	go test ./e2e -run GeneratedGoClient -oapi-codegen PATH
//
// To run forty hours of load, in twenty minutes, on a server whose clocks run 120 times
// faster:
//
//	go test ./e2e -run TestFaultFortyHours -fault.hours 40 -timeout 30m -v
//
// To take screenshots of every page of the web interface:
//
//	go test ./e2e -run TestWebScreenshots -screenshots DIR
//
// or of what 'ledgerd demo' recommends to look at, with -run WebDemo.
//
// LEDGERD_E2E_PAGES limits this to the pages whose names have that prefix. The
// images in docs/images are repo-1280-light.png and commit-1280-light.png,
// cropped at the bottom and reduced to 256 colours.
package e2e
