// Package e2e has no code of its own. Its tests run the real binary against the
// programs that the world uses: curl, nginx, a browser, Node.js, Python. One
// whose program is missing is skipped, but fails where the environment says
// CI=true.
//
// A Go client is generated from the description of the API, compiled and used by
//
//	go test ./e2e -run GeneratedGoClient -oapi-codegen PATH
//
// Pictures of every page of the web interface are taken by
//
//	go test ./e2e -run Screenshots -screenshots DIR
//
// of some pages alone where LEDGERD_E2E_PAGES says how their names begin. Those
// in docs/images are repo-1280-light.png and commit-1280-light.png, cut below
// and with 256 colours.
package e2e
