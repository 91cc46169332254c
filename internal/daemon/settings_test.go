package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Logging
	Name     string            `name:"name" required:"true" help:"who it is"`
	Password string            `name:"password" secret:"true" default:"x" help:"what nobody sees"`
	TTL      time.Duration     `name:"ttl" default:"15s" range:"1s..10m" help:"how long"`
	Count    int               `name:"count" default:"3" range:"1.." unit:"cells" help:"how many"`
	Share    float64           `name:"share" default:"0.5" range:"0..1" help:"which part"`
	Port     uint16            `name:"port" range:"..60000" help:"where"`
	Deep     bool              `name:"deep" help:"whether"`
	Tags     []string          `name:"tags" help:"which"`
	Kinds    []string          `name:"kinds" oneof:"lrp task" help:"which kinds"`
	Images   map[string]string `name:"images" help:"names of images"`
}

func (s *sample) Check(report func(name, want string)) {
	if s.Name == s.Password {
		report("password", "want another than the name")
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("x.json", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "x.json"
}

func TestFlagsCountMoreThanTheFileAndTheFileMoreThanDefaults(t *testing.T) {
	file := write(t, `{
		"name": "file", "ttl": "2m", "count": 7, "share": 1e-1, "deep": true,
		"tags": ["a", "b"], "kinds": ["lrp"], "images": {"linux": "oci:/images/linux", "": "x=y"}, "log_format": "json"
	}`)
	var s sample
	if err := Load(&s, []string{"--name", "flag", "--config=" + file, "--count=8", "--port", "80", "--deep=false", "--tags", "c,d", "--count", "9"}); err != nil {
		t.Fatal(err)
	}
	want := sample{
		Logging: Logging{LogLevel: "info", LogFormat: "json"},
		Name:    "flag", Password: "x", TTL: 2 * time.Minute, Count: 9, Share: 0.1, Port: 80,
		Tags: []string{"c", "d"}, Kinds: []string{"lrp"}, Images: map[string]string{"linux": "oci:/images/linux", "": "x=y"},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

func TestEverythingThatIsWrongIsToldAtOnceWithItsPlace(t *testing.T) {
	tests := []struct {
		name, file string
		args       []string
		want       []string
	}{
		{"all at once", "{\n\"name\": 7,\n\"ttl\": \"2h\",\n\"tll\": \"1s\",\n\"count\": 1.5, \"share\": -1,\n\"port\": 60001,\n\"deep\": \"yes\",\n\"tags\": \"a\", \"kinds\": [\"job\"],\n\"images\": [],\n\"log_level\": \"loud\"}",
			[]string{"--ttl", "x", "--colour=red", "-log-level", "debug", "--count=0", "rest", "--images", "a", "--port"}, []string{
				`x.json:2: name: 7: want a text, in quotes`,
				`x.json:3: ttl: "2h": want a duration such as 30s or 5m from 1s to 10m`,
				`x.json:4: tll: no such setting; did you mean ttl?`,
				`x.json:5: count: 1.5: want a whole number of at least 1 cells`,
				`x.json:5: share: -1: want a number from 0 to 1`,
				`x.json:6: port: 60001: want a whole number of at most 60000`,
				`x.json:7: deep: "yes": want true or false, without quotes`,
				`x.json:8: tags: "a": want a list of texts, such as ["a", "b"]`,
				`x.json:8: kinds: ["job"]: want a list of lrp, task`,
				`x.json:9: images: []: want pairs of a name and a text, such as {"a": "1"}`,
				`x.json:10: log_level: "loud": want one of debug, info, warn, error`,
				`command line: --colour: no such setting; -h lists them`,
				`command line: -log-level: no such setting; long flags have two hyphens: --log-level`,
				`command line: rest: want flags only, such as --config FILE; -h lists them`,
				`command line: --port: has no value; write --port VALUE`,
				`command line: --ttl: x: want a duration such as 30s or 5m from 1s to 10m`,
				`command line: --count: 0: want a whole number of at least 1 cells`,
				`command line: --images: a: want pairs of a name and a text`,
			}},
		{"missing", "{}", nil, []string{`name: missing: want a text; set "name" in the file or --name`}},
		{"twice", "{\"name\": \"a\",\n\n\"name\": \"b\"}", nil, []string{`x.json:3: name: given twice; the first is at x.json:1`}},
		{"secrets", `{"name": "a", "password": ["secret"]}`, nil, []string{`x.json:1: password: (not shown): want a text, in quotes`}},
		{"together", "{\"name\": \"a\",\n\"password\": \"a\"}", nil, []string{`x.json:2: password: (not shown): want another than the name`}},
		{"broken", "{\"name\": \"a\",\n\"ttl\" \"1s\"}", nil, []string{
			`x.json:2: not JSON: invalid character '"' after object key: want an object such as {"name": "value"}`,
			`name: missing: want a text; set "name" in the file or --name`}},
		{"YAML", "# bbs\nname: a\n", []string{"--name=a"}, []string{`x.json:1: not JSON: invalid character '#' looking for beginning of value; this looks like YAML, and settings are JSON (yq -o json makes one of the other): want an object such as {"name": "value"}`}},
		{"cut off", "{\"name\": \n\"a", []string{"--name=a"}, []string{`x.json:2: not JSON: unexpected end of JSON input: want an object such as {"name": "value"}`}},
		{"a list", "\n[1]", []string{"--name=a"}, []string{`x.json:1: the file: want an object such as {"name": "value"}`}},
		{"too long", strings.Repeat(" ", maxFileBytes+1), []string{"--name=a"}, []string{`x.json: the file: want at most 1048576 bytes`}},
		{"a name with underscores", "{}", []string{"--name=a", "--log_level=debug"}, []string{`command line: --log_level: no such setting; did you mean --log-level?`}},
		{"nothing like it", "{\"name\": \"a\", \"something_else\": 1}", nil, []string{`x.json:1: something_else: no such setting; -h lists them`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := write(t, tt.file)
			err := Load(new(sample), append([]string{"--config", file}, tt.args...))
			var wrong *SettingsError
			if !errors.As(err, &wrong) {
				t.Fatalf("%v", err)
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	if err := Load(new(sample), []string{"--config", missing}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
}

func TestAProgramSaysWhichVersionItIs(t *testing.T) {
	var out, log strings.Builder
	p := program{name: "bbs", stdout: &out, stderr: &log}
	status := p.main([]string{"--version"}, new(logged), func(context.Context, *slog.Logger) error { t.Error("it runs"); return nil })
	if status != 0 || !strings.HasPrefix(out.String(), "bbs ") || !strings.HasSuffix(out.String(), runtime.Version()+"\n") || log.Len() > 0 {
		t.Errorf("%d, %q, %q", status, &out, &log)
	}
}

// logged has no settings but those of the log.
type logged struct{ Logging }

func TestHelpSaysWhatEachSettingIs(t *testing.T) {
	if err := Load(new(sample), []string{"--ttl", "wrong", "-h"}); !errors.Is(err, ErrHelp) {
		t.Errorf("%v", err)
	}
	var b strings.Builder
	Help(&b, "sample", "shows what help is", new(sample), false)
	want := `sample: shows what help is

Settings come from flags and from a JSON file; flags win. In the file the name
of a flag has underscores: --log-level is "log_level".

  -h, --help              print this help
      --version           print the version
      --config FILE       read settings from this FILE
      --log-level TEXT    the least level that is logged (default info; debug, info, warn, error)
      --log-format TEXT   how lines of the log look (default text; text, json)
      --name TEXT         who it is (required)
      --password TEXT     what nobody sees (default x)
      --ttl DURATION      how long (default 15s; from 1s to 10m)
      --count NUMBER      how many (default 3; of at least 1 cells)
      --share NUMBER      which part (default 0.5; from 0 to 1)
      --port NUMBER       where (of at most 60000)
      --deep              whether
      --tags A,B          which
      --kinds A,B         which kinds (lrp, task)
      --images A=1,B=2    names of images
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// Every file is read, or refused with a place.
func FuzzSettingsFiles(f *testing.F) {
	f.Add(`{"name": "a", "ttl": "1m", "tags": ["x"], "images": {"a": "b"}}`)
	f.Add("{\"name\":\n\"a\",\"count\":1e9}")
	f.Add("[]")
	f.Fuzz(func(t *testing.T, text string) {
		l := &loader{file: "x.json"}
		s := new(sample)
		l.fields = describe(reflect.ValueOf(s).Elem())
		l.read([]byte(text))
		for _, p := range l.problems {
			if !strings.HasPrefix(p.Where, "x.json:") || p.Want == "" {
				t.Errorf("%+v", p)
			}
		}
		if len(l.problems) == 0 && (s.TTL != 0 && (s.TTL < time.Second || s.TTL > 10*time.Minute) || s.Share < 0 || s.Share > 1) {
			t.Errorf("accepted: %+v", s)
		}
	})
}

// An excused sample requires nothing once it is deep.
type excused struct{ sample }

func (s *excused) Excused() bool { return s.Deep }

func TestExcusedSettingsRequireNothing(t *testing.T) {
	if err := Load(&excused{}, nil); err == nil {
		t.Error("a name is not required")
	}
	if err := Load(&excused{}, []string{"--deep"}); err != nil {
		t.Errorf("nothing is required, and it says %v", err)
	}
	if err := Load(&excused{}, []string{"--deep", "--ttl", "x"}); err == nil {
		t.Error("what is wrong was accepted")
	}
}
