package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/auction/auctioneer"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor/libcontainer"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/logforward"
	"github.com/diegosdk/diego/storage/sqlstore"
	"github.com/diegosdk/diego/task"
)

// allSettings are the settings that the daemons embed.
func allSettings() []any {
	return []any{
		new(Logging), new(Endpoint), new(Store), new(StoreKeys), new(Leading), new(Convergence), new(Restarts), new(Tasks),
		new(Placing), new(Subscribing), new(Callbacks), new(Cell),
	}
}

// allOptions are the options of what the daemons are made of.
func allOptions() []any {
	return []any{
		new(diego.Options), new(lrp.Policy), new(lrp.RestartPolicy), new(task.Policy), new(task.CallbackPolicy), new(converge.Guard),
		new(auction.RunnerOptions), new(auction.Policy), new(auctioneer.Options), new(httpapi.HandlerOptions), new(httpapi.ClientOptions),
		new(bbs.AnnouncerOptions), new(rep.Options), new(manager.Options), new(libcontainer.Options), new(process.Options),
		new(logforward.Options), new(sqlstore.Options),
	}
}

// notSettings says why an option is not a setting of a daemon. "A part" is made by
// the daemon of other settings; "code" is for embedders.
var notSettings = map[string]string{
	"diego.Options.Store":                  "a part: store and its companions",
	"diego.Options.Dial":                   "a part",
	"diego.Options.Auctioneer":             "a part: auctioneers",
	"diego.Options.LRPs":                   "a part: its fields are settings",
	"diego.Options.Tasks":                  "a part: its fields are settings",
	"diego.Options.Guard":                  "a part: its fields are settings",
	"diego.Options.Callbacks":              "a part: its fields are settings",
	"diego.Options.Auction":                "a part: its fields are settings",
	"diego.Options.Post":                   "code",
	"lrp.Policy.Restart":                   "a part: its fields are settings",
	"auction.RunnerOptions.Directory":      "a part",
	"auction.RunnerOptions.Reporter":       "a part",
	"auction.RunnerOptions.Policy":         "a part: its fields are settings",
	"auction.RunnerOptions.Placed":         "code",
	"auction.Policy.PreferredZones":        "code: it depends on the process",
	"auction.Policy.Filters":               "code",
	"auction.Policy.Scorer":                "code",
	"auctioneer.Options.Store":             "a part: store and its companions",
	"auctioneer.Options.BBS":               "a part: bbs",
	"auctioneer.Options.Dial":              "a part",
	"auctioneer.Options.Auction":           "a part: its fields are settings",
	"rep.Options.Cordoned":                 "a part: diegoctl cell cordon changes it",
	"rep.Options.KeepCordon":               "a part: a file in dir",
	"manager.Options.Observer":             "a part: it makes figures",
	"httpapi.HandlerOptions.BBS":           "a part",
	"httpapi.HandlerOptions.Convergence":   "a part",
	"httpapi.HandlerOptions.Locks":         "a part",
	"httpapi.HandlerOptions.Auctioneer":    "a part",
	"httpapi.HandlerOptions.Cell":          "a part",
	"httpapi.HandlerOptions.Ready":         "a part",
	"httpapi.ClientOptions.Addresses":      "a part: bbs and auctioneers",
	"httpapi.ClientOptions.CellID":         "a part",
	"httpapi.ClientOptions.Find":           "a part",
	"httpapi.ClientOptions.TLS":            "a part: tls_cert and its companions",
	"httpapi.ClientOptions.NewTLS":         "a part: tls_cert and its companions",
	"httpapi.ClientOptions.Timeout":        "each caller bounds its calls by settings of its own, such as call_timeout and stop_timeout",
	"httpapi.ClientOptions.Attempts":       "the callers try again by their own rules",
	"httpapi.ClientOptions.Pause":          "the callers try again by their own rules",
	"httpapi.ClientOptions.Patience":       "the callers try again by their own rules",
	"httpapi.ClientOptions.MaxAnswerBytes": "a guard against broken servers, above every answer that there is",
	"bbs.AnnouncerOptions.Store":           "a part",
	"bbs.AnnouncerOptions.BBS":             "a part: bbs",
	"bbs.AnnouncerOptions.Presence":        "a part: its fields are settings",
	"bbs.AnnouncerOptions.VolumeDrivers":   "a part: the manager says it",
	"bbs.AnnouncerOptions.Owner":           "a part: what the directory proves",
	"rep.Options.BBS":                      "a part: bbs",
	"rep.Options.Executor":                 "a part",
	"rep.Options.Announcer":                "a part",
	"rep.Options.RootFSProviders":          "a part: image_dirs and preloaded",
	"rep.Options.VolumeDrivers":            "a part: the manager says it",
	"rep.Options.RefusedFields":            "a part: what the backend lacks",
	"rep.Options.AnnounceInterval":         "a third of presence_ttl",
	"rep.Options.NewGUID":                  "code",
	"manager.Options.Backend":              "a part: backend",
	"manager.Options.HTTPClient":           "code",
	"manager.Options.LogSink":              "a part: log_forward",
	"logforward.Options.CellID":            "a part: cell_id",
	"manager.Options.Volumes":              "a part: volume_root, volume_exports and volume_plugins; drivers of your own are code",
	"manager.Options.Delay":                "for simulations",
	"libcontainer.Options.Dir":             "a part: dir",
	"libcontainer.Options.HostNetwork":     "a cell of real containers gives each a network of its own",
	"libcontainer.Options.MaxPIDs":         "default_max_pids stands in its place",
	"process.Options.Dir":                  "a part: dir",
	"process.Options.SwitchUser":           "the process backend is for a user's own work",
	"sqlstore.Options.Prefix":              "a fleet has a database of its own",
	"sqlstore.Options.Requests":            "the default, which is the minimum, is longer than any daemon repeats a request",
	"sqlstore.Options.RetryFor":            "serve_timeout and the store's own limits depend on it: docs/operations.md lists how",
	"sqlstore.Options.OneNode":             "a part of store: one_node=true in the data source name",
	"sqlstore.Options.BusyTimeout":         "a statement that finds a SQLite file busy is tried again, for RetryFor",
}

// general are options that all packages have and no daemon sets by a setting.
var general = map[string]bool{"Now": true, "Metrics": true, "Logger": true}

func TestEveryOptionIsASettingOrHasAReason(t *testing.T) {
	set := map[string]string{}
	for _, s := range allSettings() {
		for _, o := range optionsOf(reflect.ValueOf(s).Elem()) {
			set[o.owner+"."+o.option] = o.setting
		}
	}
	known := map[string]bool{}
	for _, o := range allOptions() {
		of := reflect.TypeOf(o).Elem()
		for i := range of.NumField() {
			f := of.Field(i)
			if !f.IsExported() || general[f.Name] {
				continue
			}
			name := of.String() + "." + f.Name
			known[name] = true
			if (set[name] == "") == (notSettings[name] == "") {
				t.Errorf("%s: the setting is %q, and the reason for none %q; want one of them", name, set[name], notSettings[name])
			}
		}
	}
	for name, setting := range set {
		if !known[name] {
			t.Errorf("the setting %s sets %s, which is not an option", setting, name)
		}
	}
	for name := range notSettings {
		if !known[name] {
			t.Errorf("%s has a reason and is not an option", name)
		}
	}
}

func TestApplySetsEveryOptionThatASettingNames(t *testing.T) {
	for _, s := range allSettings() {
		options := optionsOf(reflect.ValueOf(s).Elem())
		for i, o := range options {
			switch v := o.value; v.Kind() {
			case reflect.String:
				v.SetString(o.setting)
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Int, reflect.Int64:
				v.SetInt(int64(i + 1))
			case reflect.Uint16:
				v.SetUint(uint64(i + 1))
			case reflect.Float64:
				v.SetFloat(float64(i + 1))
			case reflect.Slice:
				v.Set(reflect.ValueOf([]string{o.setting}))
			case reflect.Map:
				v.Set(reflect.ValueOf(map[string]string{o.setting: "x"}))
			}
		}
		targets := allOptions()
		apply(s, targets...)
		for _, o := range options {
			for _, target := range targets {
				of := reflect.ValueOf(target).Elem()
				if of.Type().String() != o.owner {
					continue
				}
				if same := reflect.DeepEqual(of.FieldByName(o.option).Interface(), o.value.Interface()); same == o.byHand {
					t.Errorf("%s sets %s.%s: %v, by hand: %v", o.setting, o.owner, o.option, same, o.byHand)
				}
			}
		}
	}
}

func TestTheWaitsOfCallbacksAndTasksMustFitTogether(t *testing.T) {
	var s Tasks
	if err := Load(&s, []string{"--task-stale-resolving", "5s", "--callback-min-backoff", "1m"}); err != nil {
		t.Fatal(err)
	}
	var got string
	s.CheckTasks(func(name, want string) { got += name + ": " + want + "\n" })
	if !strings.Contains(got, "task_stale_resolving: want at least ") || !strings.Contains(got, "callback_min_backoff: want at most callback_max_backoff") {
		t.Errorf("got %s", got)
	}
}

// A package reads 0 as its default, and a user who writes 0 means 0. So each
// number with a default other than 0 refuses 0, or is translated.
func TestNoSettingOf0SilentlyMeansItsDefault(t *testing.T) {
	translated := map[string]func(settings any) any{
		"immediate_restarts":        func(s any) any { return s.(*Restarts).Policy().Restart.ImmediateRestarts },
		"history":                   func(s any) any { return s.(*Restarts).Policy().History },
		"task_max_retries":          func(s any) any { return s.(*Tasks).TaskPolicy().MaxRetries },
		"starting_container_weight": func(s any) any { return s.(*Placing).Auction().Policy.StartingContainerWeight },
		"stop_pause": func(s any) any {
			var o rep.Options
			s.(*Cell).Rep(&o)
			return o.StopPause
		},
		"store_remember": func(s any) any { return s.(*Store).options(nil, nil).Remember },
		"ended_logs": func(s any) any {
			var o manager.Options
			s.(*Cell).Upkeep.Manager(&o)
			return o.EndedLogs
		},
		"sessions": func(s any) any {
			var o manager.Options
			s.(*Cell).Upkeep.Manager(&o)
			return o.Sessions
		},
	}
	notAnOption := map[string]bool{"store_wait": true}
	for _, settings := range allSettings() {
		for _, f := range describe(reflect.ValueOf(settings).Elem()) {
			zero := "0"
			switch f.value.Interface().(type) {
			case bool, []string, map[string]string:
				continue
			case string:
				zero = ""
			case time.Duration:
				zero = "0s"
			}
			isDefault := f.byDefault == "" || f.byDefault == zero
			err := Load(settings, []string{f.flag() + "=" + zero})
			refused := err != nil && strings.Contains(err.Error(), f.name+":") || err != nil && strings.Contains(err.Error(), f.flag())
			if c, ok := settings.(*Restarts); ok {
				c.CheckRestarts(func(name, _ string) { refused = refused || name == f.name })
			}
			switch honoured := translated[f.name]; {
			case isDefault, refused, notAnOption[f.name]:
			case honoured == nil:
				t.Errorf("%s accepts %q, which means its default, %s", f.name, zero, f.byDefault)
			case reflect.ValueOf(honoured(settings)).IsZero():
				t.Errorf("%s: %q reaches the package as its default", f.name, zero)
			}
		}
	}
}

func TestTransfersShowTheCertificateOfTheSettingsAndTrustTheirAuthorities(t *testing.T) {
	authority, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(name string) (cert, key string) {
		t.Helper()
		cert, key, err := authority.Issue(devcerts.Request{File: name, Name: name, Hosts: []string{"127.0.0.1"}, For: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	ca, err := os.ReadFile(authority.CA())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(issue("server"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	defer server.Close()

	c := sampleCell("")
	c.TransferTLSCert, c.TransferTLSKey = issue("downloader")
	c.TransferTLSCA = filepath.Join(t.TempDir(), "authorities.pem")
	trust := func(ca string) {
		t.Helper()
		text, err := os.ReadFile(ca)
		if err == nil {
			err = os.WriteFile(c.TransferTLSCA, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trust(authority.CA())
	forHost, err := c.transferTLS()
	if err != nil {
		t.Fatal(err)
	}
	meet := func() (who string, err error) {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), forHost("127.0.0.1"))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		answer, err := (&http.Client{Transport: &http.Transport{
			DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		}}).Get(server.URL)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	if who, err := meet(); who != "downloader" || err != nil {
		t.Errorf("the server met %q, %v", who, err)
	}
	elsewhere, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	trust(elsewhere.CA())
	if _, err := meet(); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("once the file names another authority: %v", err)
	}
	trust(authority.CA())
	if _, err := meet(); err != nil {
		t.Errorf("once the file names the first authority again: %v", err)
	}

	for name, change := range map[string]func(*Cell){
		"transfer_tls_cert": func(c *Cell) { c.TransferTLSCert = filepath.Join(t.TempDir(), "none") },
		"transfer_tls_ca":   func(c *Cell) { c.TransferTLSCA = c.TransferTLSKey },
	} {
		wrong := *c
		change(&wrong)
		if _, err := wrong.transferTLS(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if config, err := sampleCell("").transferTLS(); config != nil || err != nil {
		t.Errorf("without settings, there is a configuration, or an error: %v", err)
	}
}

func TestSettingsOfACellThatCannotBeAreNamed(t *testing.T) {
	for name, change := range map[string]func(*Cell){
		"first_id":         func(c *Cell) { c.FirstID, c.LastID = 2, 1 },
		"subnet":           func(c *Cell) { c.Subnet = "10.0.0.300/8" },
		"transfer_tls_key": func(c *Cell) { c.TransferTLSCert = "cert.pem" },
		"identity_ca_key":  func(c *Cell) { c.IdentityCACert = "cert.pem" },

		"log_forward_tls_key": func(c *Cell) { c.LogForwardTLSCert = "cert.pem" },
	} {
		c := sampleCell("")
		change(c)
		var got []string
		c.CheckCell(func(name, _ string) { got = append(got, name) })
		if len(got) != 1 || got[0] != name {
			t.Errorf("reported are %q, want %s", got, name)
		}
	}
	c := sampleCell(t.TempDir())
	c.TrustedCertificates = filepath.Join(t.TempDir(), "none")
	_, _, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
	if err == nil || !strings.HasPrefix(err.Error(), "trusted_certificates: ") {
		t.Errorf("a directory that is not there: %v", err)
	}
}
