// Package e2e has no code of its own. Its tests run the real binary against the
// programs that the world uses: curl, nginx, a browser, Node.js, Python. One
// whose program is missing is skipped, but fails where the environment says
// CI=true.
package e2e
