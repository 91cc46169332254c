package main

import (
	"testing"

	"github.com/diegosdk/diego/internal/chromium"
	"github.com/diegosdk/diego/internal/fleetdir"
)

func TestABrowserWithTheOperatorsCertificateUsesTheConsoleWithoutALink(t *testing.T) {
	chromium.Need(t)
	data := t.TempDir()
	running(t, data)
	api, err := fleetdir.Find(data)
	if err != nil {
		t.Fatal(err)
	}
	files := chromium.Files{Cert: api.Operator.Cert, Key: api.Operator.Key, CA: api.Operator.CA}
	page := chromium.OpenAs(t, api.URL, files)
	page.Visit(api.URL + "/")
	page.Await("diego.stats().status === 'live' && diego.stats().cells === 1")
	page.Await("document.querySelector('.who').textContent === 'operator'")
	v := viewer{page, t}
	v.opens("cell", "cell-1")
	v.does("cordon", "cell-1 gets no new work", "cell-1 is cordoned.")
	v.reads(".tag", "cordoned")
	v.well()

	stranger := chromium.OpenAs(t, api.URL, chromium.Files{CA: api.Operator.CA})
	stranger.Visit(api.URL + "/console/")
	stranger.Await("document.querySelector('.lost').textContent.includes('Nothing could be read yet')")
	stranger.Await("diego.stats().status === 'lost' && document.querySelectorAll('[data-action]').length === 0")
	var whoami int
	stranger.Eval("fetch('api/whoami').then(answer => answer.status)", &whoami)
	if whoami != 403 {
		t.Errorf("a browser without a certificate gets %d, want 403", whoami)
	}
}
