// Package lint holds the house rules; its tests check the module against them.
// The tables in this file are the rules about packages: who may import whom,
// and which files are pure.
package lint

import "slices"

// Module is the path of this module.
const Module = "github.com/diegosdk/diego"

// A Layer says what the packages under one directory may import. A package
// has the rules of the longest path that is a prefix of its own.
type Layer struct {
	// Path is relative to the module; "" is the root package. A path covers
	// the packages below it unless they have a layer of their own.
	Path string
	// Imports are the packages of this module that the layer may import, each
	// with everything below it, TestImports those that its test files may import
	// besides.
	Imports, TestImports []string
	// Modules are the other modules that it may import, TestModules those that
	// its test files may import besides.
	Modules, TestModules []string
}

// Layers is the import graph. A package that may import lrp or task may import
// executor too: their types are made of its. Test files may import more: see
// testImports.
var Layers = []Layer{
	{Path: "executor"},
	{Path: "executor/internal", Imports: []string{"executor", "executor/internal", "internal/reach"}, Modules: []string{sys}},
	{Path: "executor/filecopy", Imports: []string{"executor", "executor/internal"}},
	{Path: "executor/identity", Imports: []string{"executor"}, TestImports: []string{"httpapi"}},
	{Path: "executor/manager", Imports: []string{"executor", "executor/identity", "executor/internal", "internal/reach"}, Modules: []string{sync}},
	{Path: "executor/volumes", Imports: []string{"executor", "executor/manager"}},
	{Path: "executor/libcontainer", Imports: []string{"executor", "executor/internal", room + "cgroup", room + "ids", room + "network", room + "pid1", room + "rootfs", room + "seccomp", room + "stage"}, TestImports: []string{"executor/identity", "executor/volumes", "executor/volumes/volumetest"},
		Modules: []string{runc, cgroups, sys}, TestModules: []string{netlink, netns, nftables}},
	{Path: room + "cgroup", Imports: []string{"executor", "executor/internal", room + "kernelfile", room + "pid1"}, Modules: []string{cgroups, sys}},
	{Path: room + "ids", Imports: []string{"executor", room + "pid1"}, Modules: []string{sys}},
	{Path: room + "kernelfile", Modules: []string{sys}},
	{Path: room + "network", Imports: []string{"executor", room + "kernelfile", room + "stage"}, Modules: []string{netlink, netns, nftables, "github.com/mdlayher/netlink", sys}},
	{Path: room + "pid1", Imports: []string{"executor/internal"}, Modules: []string{sys}},
	{Path: room + "rootfs", Imports: []string{"executor", "executor/internal", room + "ids", room + "stage"}, Modules: []string{sys}},
	{Path: room + "seccomp", Imports: []string{room + "pid1"}, Modules: []string{sys}},
	{Path: room + "stage"},
	{Path: "executor/process", Imports: []string{"executor", "executor/internal"}, Modules: []string{sync}},
	{Path: "executor/backendtest", Imports: []string{"executor", "executor/internal"}, Modules: []string{cmp}},
	{Path: "lrp", Imports: []string{"executor", "internal/enum"}},
	{Path: "task", Imports: []string{"executor", "internal/enum"}},
	{Path: "auction", Imports: []string{"executor", "lrp", "task", "internal/deadline", "internal/enum", "internal/parallel"}, Modules: []string{sync}},
	{Path: "storage", Imports: []string{"executor", "lrp", "task"}, Modules: []string{sync}},
	{Path: "storage/memstore", Imports: []string{"storage", "executor", "lrp", "task"}},
	{Path: "storage/sqlstore", Imports: []string{"storage", "executor", "lrp", "task", sqlrooms + "dialect", sqlrooms + "tables", sqlrooms + "guess", sqlrooms + "group", sqlrooms + "memory"},
		Modules:     []string{"github.com/mattn/go-sqlite3", "github.com/go-sql-driver/mysql", "github.com/lib/pq", sync},
		TestModules: []string{"github.com/jackc/pgx/v5"}}, // a driver that callers of New may have
	{Path: sqlrooms + "dialect", Modules: []string{"github.com/mattn/go-sqlite3", "github.com/go-sql-driver/mysql", "github.com/lib/pq"}},
	{Path: sqlrooms + "tables", Imports: []string{sqlrooms + "dialect"}},
	{Path: sqlrooms + "guess", Imports: []string{sqlrooms + "dialect", sqlrooms + "tables"}},
	{Path: sqlrooms + "group"},
	{Path: sqlrooms + "memory", Imports: []string{"storage", "executor", "lrp", "task"}},
	{Path: "storage/storagetest", Imports: []string{"storage", "storage/memstore", "executor", "lrp", "task"}}, // a stranger's store links nothing else
	{Path: "converge", Imports: []string{"executor", "lrp", "task", "auction", "storage", "internal/enum", "internal/parallel"}},
	{Path: "rep", Imports: []string{"executor", "lrp", "task", "auction", "storage", "internal/enum"}},
	{Path: "bbs", Imports: []string{"executor", "lrp", "task", "auction", "storage", "converge", "rep", "internal/deadline", "internal/metrics", "internal/parallel", "internal/reach"}},
	{Path: "auction/auctioneer", Imports: []string{"executor", "auction", "bbs", "internal/metrics"}},
	{Path: "rep/localcell", Imports: []string{"executor", "executor/manager", "lrp", "auction", "bbs", "rep", "storage", "internal/parallel"}},
	{Path: "rep/logforward", Imports: []string{"executor", "executor/manager", "auction", "rep"}},
	{Path: "rep/logforward/syslog", Imports: []string{"rep/logforward"}, TestImports: []string{"rep"}},
	{Path: "httpapi", Imports: []string{"executor", "lrp", "task", "auction", "storage", "bbs", "rep", "httpapi/problem", "internal/metrics", "internal/wire"}},
	{Path: "httpapi/problem"},
	// Nothing imports it but programs.
	{Path: "console", Imports: []string{"executor", "lrp", "auction", "storage", "bbs", "rep", "httpapi", "httpapi/problem", "internal/parallel", "internal/version"}, TestImports: []string{"task"}},
	// Cells for tests and examples, which report to a BBS.
	{Path: "rep/memcell", Imports: []string{"executor", "lrp", "task", "auction", "storage", "bbs", "rep"}},
	{Path: "rep/celltest", Imports: []string{"executor", "lrp", "task", "auction", "storage", "storage/memstore", "bbs", "rep"}, TestImports: []string{"httpapi", "rep/localcell"}},
	// The public part of internal/simulation. Nothing imports it but tests.
	{Path: "simulation", Imports: []string{"executor", "lrp", "task", "auction", "storage", "bbs", "rep", "internal/simulation"}, TestImports: []string{"rep/localcell"}},
	{Path: "", Imports: []string{"executor", "lrp", "task", "auction", "storage", "converge", "bbs", "internal/metrics"}},

	{Path: "internal", Imports: []string{everything}, Modules: []string{cmp, sync}},
	{Path: "internal/lint", Imports: []string{"internal/lint"}},
	{Path: "internal/testenv"},
	{Path: "internal/wire", Imports: []string{"executor", "storage", "httpapi/problem"}},
	{Path: "internal/deadline"},
	{Path: "internal/enum", Imports: []string{"executor"}},
	{Path: "internal/metrics", Imports: []string{"auction"}},
	{Path: "internal/parallel"},
	{Path: "internal/reach"},
	{Path: "internal/syslogtest"},
	{Path: "internal/specfile", Imports: []string{"executor", "lrp", "task", "internal/spelling"}, Modules: []string{"github.com/goccy/go-yaml", cmp}},
	{Path: "internal/daemon", Imports: []string{everything}, Modules: []string{pflag, cmp, sync}},
	{Path: "internal/daemon/otlp", Imports: []string{"rep/logforward"}, Modules: []string{opentelemetry, protobuf}, TestImports: []string{"rep"}},
	{Path: "internal/gnuflags", Imports: []string{"internal/spelling"}, Modules: []string{pflag}},
	{Path: "internal/chromium", Imports: []string{"internal/testenv"}, Modules: []string{sys}},
	{Path: "internal/testdb", Imports: []string{"internal/testenv"}, Modules: []string{"github.com/go-sql-driver/mysql", "github.com/lib/pq"}},
	{Path: "examples", Imports: []string{everything}, Modules: []string{"github.com/mattn/go-sqlite3", "github.com/go-sql-driver/mysql", "github.com/lib/pq", sync}, TestModules: []string{opentelemetry, protobuf}},
	{Path: "examples/diegoctl", Imports: []string{everything}, Modules: []string{cobra, pflag}},
	{Path: diegoctl + "cli", Imports: []string{"internal/gnuflags", "internal/spelling"}, Modules: []string{cobra, pflag}},
	{Path: diegoctl + "show"},
	{Path: diegoctl + "terminal", Imports: []string{"executor"}, Modules: []string{term}},
	{Path: diegoctl + "child"},
	{Path: diegoctl + "difference", Imports: []string{"internal/specfile", diegoctl + "show"}},
	{Path: diegoctl + "intent", Imports: []string{"executor", "lrp", "task", "auction", "bbs", diegoctl + "difference", diegoctl + "show"}},
}

const (
	everything = "*"
	room       = "executor/libcontainer/internal/" // begins the packages that one container is made of
	sqlrooms   = "storage/sqlstore/internal/"      // the same for the SQL store
	diegoctl   = "examples/diegoctl/internal/"     // the same for diegoctl
	cmp        = "github.com/google/go-cmp"
	cobra      = "github.com/spf13/cobra"
	pflag      = "github.com/spf13/pflag"
	sync       = "golang.org/x/sync"
	sys        = "golang.org/x/sys"
	term       = "golang.org/x/term"

	opentelemetry = "go.opentelemetry.io/proto/otlp"
	protobuf      = "google.golang.org/protobuf"

	runc     = "github.com/opencontainers/runc"
	cgroups  = "github.com/opencontainers/cgroups"
	netlink  = "github.com/vishvananda/netlink"
	netns    = "github.com/vishvananda/netns"
	nftables = "github.com/google/nftables"
)

// testImports is what every test file may import beyond its layer: stores and
// suites to run against, the pass that streams a snapshot, a whole control
// plane, helpers, and its own package's subdirectories.
var testImports = []string{"", "internal", "converge", "storage/memstore", "storage/sqlstore", "storage/storagetest", "executor/backendtest", "executor/process", "executor/manager", "rep/memcell"}

// Pure lists the packages whose rules are pure functions. All their files are
// pure except the listed shell files. Packages below them are not pure.
var Pure = []PurePackage{
	{Path: "executor", Shell: []string{"backend.go", "sessionbackend.go", "subscription.go", "work.go"}},
	{Path: "executor/identity"},
	{Path: "lrp"},
	{Path: "task"},
	{Path: "auction", Shell: []string{"cellclient.go", "runner.go"}},
	{Path: "converge", Shell: []string{"converger.go", "pass.go"}},
	{Path: "rep", Shell: []string{"api.go", "cell.go", "evacuate.go", "options.go", "queue.go", "rep.go", "selftest.go", "session.go", "sessionrefusals.go", "sessionreports.go", "settle.go", "survey.go"}},
}

// WithoutRace lists the packages besides Pure whose tests walk far in one
// goroutine. scripts/test runs these and those of Pure without the race
// detector, too; under it they go only a part of the way (testenv.Race).
var WithoutRace = []string{"internal/modelcheck", "internal/simulation"}

// A PurePackage is a package with pure files.
type PurePackage struct {
	Path  string
	Shell []string // files with goroutines, clocks or contexts
}

// IsPure reports whether the file of the package at path is pure.
func IsPure(path, file string) bool {
	for _, p := range Pure {
		if p.Path == path {
			return !slices.Contains(p.Shell, file)
		}
	}
	return false
}

// impureImports are not imported by pure files, nor is anything below them.
var impureImports = []string{
	"context", "crypto/rand", "database/sql", "io/fs", "log", "math/rand", "os", "runtime", "sync", "syscall", "testing", "unsafe",
	"net", // but see pureImports
}

// pureImports are exceptions: packages below an impure one that only compute.
var pureImports = []string{"net/netip", "net/url"}

// impureTime are the functions of package time that look at a clock.
var impureTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// Light lists the packages that anybody can link: what is reachable from them
// is this module and the standard library without the packages of unlinked.
var Light = []string{"executor", "lrp", "task", "auction", "converge", "rep", "storage", "storage/memstore"}

var unlinked = []string{"net/http", "os/exec", "database/sql"}
