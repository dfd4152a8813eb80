package conformance

import (
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// Every package below store/storetest has tests that run.
func TestNoSuiteIsForgotten(t *testing.T) {
	var folders, listed []string
	for _, file := range must.Get(filepath.Glob("../*/*.go"))(t) {
		folders = append(folders, filepath.Base(filepath.Dir(file)))
	}
	folders = slices.DeleteFunc(slices.Compact(folders), func(folder string) bool { return folder == "conformance" })
	for _, suite := range suites(storetest.Suite{}) {
		kind := reflect.TypeOf(suite)
		listed = append(listed, path.Base(kind.PkgPath()))
		if kind.NumMethod() == 0 {
			t.Errorf("%s has no tests", kind)
		}
	}
	if !slices.Equal(folders, listed) {
		t.Errorf("the packages %v have tests, and %v run", folders, listed)
	}
}
