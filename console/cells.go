package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// A cellRow is what the page shows of a cell.
type cellRow struct {
	CellID    string            `json:"cell_id"`
	Zone      string            `json:"zone,omitempty"`
	Address   string            `json:"address,omitempty"`
	Total     auction.Capacity  `json:"total"`
	Remaining *auction.Capacity `json:"remaining,omitempty"`

	// The page keeps what an answer lacks, so these are there when they are false.
	Evacuating bool `json:"evacuating"`
	Cordoned   bool `json:"cordoned"`
	Unhealthy  bool `json:"unhealthy"`
	Settling   bool `json:"settling"`

	Instances int `json:"instances"`
	Tasks     int `json:"tasks"`
	Starting  int `json:"starting"`

	PlacementTags         []string `json:"placement_tags,omitempty"`
	OptionalPlacementTags []string `json:"optional_placement_tags,omitempty"`
	RootFSProviders       []string `json:"rootfs_providers,omitempty"`
	VolumeDrivers         []string `json:"volume_drivers,omitempty"`

	// Error says why the cell has not answered. Then Total is what it has
	// announced, and nobody knows what remains.
	Error  string    `json:"error,omitempty"`
	SeenAt time.Time `json:"seen_at"`
}

const (
	// fresh is how long the states of cells are good for all who ask.
	fresh = 2 * time.Second
	// cellTime is how long a cell may take to say its state, and so many are asked
	// at a time.
	cellTime  = 2 * time.Second
	cellsAsks = 64
)

// states are the rows of all cells, which any number of browsers share.
type states struct {
	sync.Mutex
	at   time.Time
	list []byte
	err  error // in place of the list
}

// cells answers with all cells that are present, as a list of the API.
func (c *console) cells(w http.ResponseWriter, r *http.Request) {
	c.states.Lock()
	defer c.states.Unlock()
	if time.Since(c.states.at) >= fresh {
		// One that goes away does not keep the others from their answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), cmp.Or(c.Calls.Timeout, 30*time.Second))
		defer cancel()
		c.states.list, c.states.err = c.askCells(ctx)
		c.states.at = time.Now()
	}
	if c.states.err != nil {
		httpapi.WriteProblem(w, c.states.err)
		return
	}
	answerAs(w, "application/x-ndjson", c.states.list)
}

func (c *console) askCells(ctx context.Context) ([]byte, error) {
	present, err := c.Calls.BBS.Cells(ctx)
	if err != nil {
		return nil, err
	}
	c.dialed.keep(present)
	lines := make([][]byte, len(present))
	parallel.Each(len(present), cellsAsks, func(i int) {
		ctx, cancel := context.WithTimeout(ctx, cellTime)
		defer cancel()
		row := c.askCell(ctx, present[i])
		lines[i], _ = json.Marshal(struct { // text and numbers
			Item cellRow `json:"item"`
		}{row})
	})
	lines = append(lines, fmt.Appendf(nil, "{\"end\":%d}\n", len(present)))
	return bytes.Join(lines, []byte("\n")), nil
}

func (c *console) askCell(ctx context.Context, p bbs.CellPresence) cellRow {
	row := cellRow{
		CellID: p.CellID, Zone: p.Zone, Address: p.Address, Total: p.Capacity, SeenAt: time.Now().UTC(),
		PlacementTags: p.PlacementTags, OptionalPlacementTags: p.OptionalPlacementTags, RootFSProviders: p.RootFSProviders, VolumeDrivers: p.VolumeDrivers,
	}
	cell, err := c.dialed.cell(p, c.Cell)
	var s auction.CellState
	if err == nil {
		s, err = cell.State(ctx)
	}
	if err != nil {
		row.Error = err.Error()
		return row
	}
	row.Total, row.Remaining = s.Total, &s.Remaining
	row.Evacuating, row.Cordoned, row.Unhealthy, row.Settling = s.Evacuating, s.Cordoned, s.Unhealthy, s.Settling
	row.Instances, row.Tasks, row.Starting = len(s.LRPs), len(s.Tasks), s.StartingContainers
	return row
}

// dialed are the cells that were reached, so that their connections serve again.
type dialed struct {
	sync.Mutex
	cells map[string]dialedCell
}

type dialedCell struct {
	address string
	rep.API
}

// cell reaches a cell at the address of its presence.
func (d *dialed) cell(p bbs.CellPresence, dial func(bbs.CellPresence) (rep.API, error)) (rep.API, error) {
	d.Lock()
	defer d.Unlock()
	if known, ok := d.cells[p.CellID]; ok && known.address == p.Address {
		return known.API, nil
	}
	api, err := dial(p)
	if err != nil {
		return nil, err
	}
	if d.cells == nil {
		d.cells = map[string]dialedCell{}
	}
	d.cells[p.CellID] = dialedCell{p.Address, api}
	return api, nil
}

// keep forgets the cells that are not present any more.
func (d *dialed) keep(present []bbs.CellPresence) {
	d.Lock()
	defer d.Unlock()
	there := make(map[string]bool, len(present))
	for _, p := range present {
		there[p.CellID] = true
	}
	maps.DeleteFunc(d.cells, func(id string, _ dialedCell) bool { return !there[id] })
}

// cellCalls are the calls of a cell that the page makes. Those of the control
// plane to its cells are none of them.
var cellCalls = map[string]bool{
	"state": true, "usages": true, "containers": true, "logs": true,
	"evacuate": true, "evacuation": true, "cancel_evacuation": true, "cordon": true,
}

// atCell makes a call at a cell as the API of the cell would: a handler for that
// cell judges the caller, reads the arguments and writes the answer.
func (c *console) atCell(w http.ResponseWriter, r *http.Request) {
	id, call := r.URL.Query().Get("cell"), r.PathValue("call")
	err := func() error {
		if !cellCalls[call] {
			return &problem.PathError{Path: r.URL.Path}
		}
		who, err := c.admit(r, "cell/"+call)
		if err != nil {
			return err
		}
		if call == "logs" {
			leave, err := c.logs.enter(who)
			if err != nil {
				return err
			}
			defer leave()
		}
		p, err := c.find(r.Context(), id)
		if err != nil {
			return err
		}
		o := c.Calls
		if o.Cell, err = c.dialed.cell(p, c.Cell); err != nil {
			return err
		}
		o.BBS, o.Convergence, o.Locks, o.Auctioneer = nil, nil, nil, nil
		o.Metrics = nil // the calls at a cell are counted there
		h, err := httpapi.NewHandler(o)
		if err != nil {
			return err
		}
		inner := r.Clone(r.Context())
		inner.URL = &url.URL{Path: "/v1/cell/" + call}
		h.ServeHTTP(w, inner)
		return nil
	}()
	if err != nil {
		httpapi.WriteProblem(w, err)
	}
}

// maxLogs is how many logs may be followed at a time, and maxLogsEach how many by
// one name of a certificate.
const maxLogs, maxLogsEach = 200, 50

// logs counts those that are followed.
type logs struct {
	sync.Mutex
	all  int
	each map[string]int
}

// enter counts one more, until leave. It fails with a *problem.TooManyError.
func (l *logs) enter(who caller) (leave func(), err error) {
	l.Lock()
	defer l.Unlock()
	switch {
	case l.all >= maxLogs:
		return nil, &problem.TooManyError{What: "logs of the console", Limit: maxLogs}
	case who.login == "certificate" && l.each[who.Name] >= maxLogsEach:
		return nil, &problem.TooManyError{What: fmt.Sprintf("logs of the console for %q", who.Name), Limit: maxLogsEach}
	}
	l.all++
	l.each[who.Name]++
	return func() {
		l.Lock()
		defer l.Unlock()
		l.all--
		if l.each[who.Name]--; l.each[who.Name] == 0 {
			delete(l.each, who.Name)
		}
	}, nil
}

// find returns the presence of a cell.
func (c *console) find(ctx context.Context, id string) (bbs.CellPresence, error) {
	present, err := c.Calls.BBS.Cells(ctx)
	if err != nil {
		return bbs.CellPresence{}, err
	}
	for _, p := range present {
		if p.CellID == id {
			return p, nil
		}
	}
	return bbs.CellPresence{}, fmt.Errorf("cell %q is not present: %w", id, storage.ErrNotFound)
}
