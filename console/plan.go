package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/lrp"
)

// A planRequest asks whether more instances of a process would fit.
type planRequest struct {
	ProcessGUID string `json:"process_guid"`
	// Instances is how many more, from 1 to maxPlanned.
	Instances int `json:"instances"`
	// The sizes, unless nil, replace those of the definition.
	MemoryMB *int64 `json:"memory_mb"`
	DiskMB   *int64 `json:"disk_mb"`
	MaxPIDs  *int64 `json:"max_pids"`
}

// maxPlanned bounds the work of one question.
const maxPlanned = 10_000

// plan answers with where more instances would go, or why they would go nowhere.
func (c *console) plan(w http.ResponseWriter, r *http.Request) {
	var in planRequest
	_, err := c.admit(r, "auctioneer/plan")
	if err == nil && c.Calls.Auctioneer == nil {
		err = errors.New("this process knows no auctioneer, so it cannot plan; ask another one")
	}
	if err == nil {
		err = read(w, r, &in)
	}
	if err != nil {
		httpapi.WriteProblem(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(c.Calls.Timeout, 30*time.Second))
	defer cancel()
	items, err := c.items(ctx, in)
	var result auction.Result
	if err == nil {
		result, err = c.Calls.Auctioneer.Plan(ctx, items...)
	}
	if err != nil {
		httpapi.WriteProblem(w, err)
		return
	}
	// The auctioneer plans them together with the work that waits already.
	ours := make(map[auction.Key]bool, len(items))
	for i := range items {
		ours[items[i].Key] = true
	}
	all := len(result.Placements) + len(result.Refusals)
	result.Placements = slices.DeleteFunc(result.Placements, func(p auction.Placement) bool { return !ours[p.Item.Key] })
	result.Refusals = slices.DeleteFunc(result.Refusals, func(f auction.Refusal) bool { return !ours[f.Item.Key] })
	answer(w, struct {
		Items  int            `json:"items"`
		Others int            `json:"others"`
		Result auction.Result `json:"result"`
	}{len(items), all - len(result.Placements) - len(result.Refusals), result})
}

// items returns the work of a question: the indices after the desired ones.
func (c *console) items(ctx context.Context, in planRequest) ([]auction.Item, error) {
	var v executor.Validator
	v.Check(in.ProcessGUID != "", "process_guid", "", "not empty")
	v.Check(in.Instances >= 1 && in.Instances <= maxPlanned, "instances", in.Instances, "from 1 to 10,000")
	for name, value := range map[string]*int64{"memory_mb": in.MemoryMB, "disk_mb": in.DiskMB, "max_pids": in.MaxPIDs} {
		v.Check(value == nil || *value >= 0 && *value <= auction.MaxSize, name, value, "from 0 to 2^40")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	d, err := c.Calls.BBS.Deployment(ctx, in.ProcessGUID)
	if err != nil {
		return nil, err
	}
	items := make([]auction.Item, in.Instances)
	for i := range items {
		item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: d.ProcessGUID, DefinitionID: d.ActiveDefinitionID, Index: d.Instances + i, Domain: d.Domain}, time.Now().UTC())
		if err != nil {
			return nil, err
		}
		item.MemoryMB = *cmp.Or(in.MemoryMB, &item.MemoryMB)
		item.DiskMB = *cmp.Or(in.DiskMB, &item.DiskMB)
		item.MaxPIDs = *cmp.Or(in.MaxPIDs, &item.MaxPIDs)
		items[i] = item
	}
	return items, nil
}

// maxQuestion bounds the arguments of what the console asks itself, in bytes.
const maxQuestion = 64 << 10

// read reads arguments: one JSON object without unknown members.
func read(w http.ResponseWriter, r *http.Request, in any) error {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		var v executor.Validator
		v.Check(false, "Content-Type", kind, "application/json")
		return v.Err()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &problem.TooLargeError{What: "request body", Limit: large.Limit}
	case err != nil:
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(in); err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		var v executor.Validator
		v.Check(false, "body", err.Error(), "a JSON object")
		return v.Err()
	}
	return nil
}
