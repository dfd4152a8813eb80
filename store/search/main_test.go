package search_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
