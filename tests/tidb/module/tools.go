//go:build tools

// Package tidbrun names the two programs for `go mod tidy`. Do not pass `-tags tools` to the build.
package tidbrun

import (
	_ "github.com/pingcap/tidb/cmd/tidb-server"
	_ "github.com/pingcap/tidb/dumpling/cmd/dumpling"
)
