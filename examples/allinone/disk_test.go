package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
)

func TestAFullDiskIsReportedOnceAndItsEndOnce(t *testing.T) {
	free := 0
	d := disk{dir: "/data", keep: func(bytes int) error {
		if bytes > free {
			return errors.New("no space left")
		}
		return nil
	}}
	const full, over = "nothing can be kept in /data: no space left; ", "there is room in /data again"
	for i, look := range []struct {
		free int
		want string
	}{
		{scarce, ""},
		{scarce - 1, full},
		{0, ""},
		{scarce - 1, ""},
		{enough - 1, ""}, // at the limit it stays as it was
		{scarce - 1, ""},
		{enough, over},
		{enough, ""},
		{scarce, ""},
		{0, full},
	} {
		free = look.free
		if got := d.look(); !strings.HasPrefix(got, look.want) || (got == "") != (look.want == "") {
			t.Errorf("look %d, with %d bytes free: %q, want %q", i, look.free, got, look.want)
		}
	}
}

func TestLookingForRoomLeavesNothingBehind(t *testing.T) {
	data, err := daemon.OpenDir("data", filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	before, err := os.ReadDir(data.In())
	if err != nil {
		t.Fatal(err)
	}
	if err := keep(data, enough); err != nil {
		t.Error(err)
	}
	after, err := os.ReadDir(data.In())
	if err != nil || len(after) != len(before) {
		t.Errorf("there are %v, %v; want %v", after, err, before)
	}
}
