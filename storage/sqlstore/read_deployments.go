package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

// bareDeployment makes a deployment from its columns. The deployment is never
// nil; the error says that a column has an impossible value.
func bareDeployment(guid, domain string, strategy, instances int64, active, healthy string, epoch, index int64, others, rules []byte) (*lrp.Deployment, error) {
	d := &lrp.Deployment{
		ProcessGUID: guid, Domain: domain, UpdateStrategy: lrp.UpdateStrategy(strategy),
		Settings:           lrp.Settings{Instances: int(instances)},
		Definitions:        map[string]lrp.Definition{active: {}},
		ActiveDefinitionID: active, HealthyDefinitionID: healthy,
		ModificationTag: executor.ModificationTag{Epoch: epoch, Index: index},
	}
	if strategy < 0 || strategy > int64(lrp.Recreate) {
		return d, fmt.Errorf("update strategy %d is not known", strategy)
	}
	for len(others) > 0 {
		id, rest, err := cutBytes(others)
		if err != nil {
			return d, errors.New("the ids of its definitions are damaged")
		}
		d.Definitions[string(id)] = lrp.Definition{}
		others = rest
	}
	if err := storage.DecodeRules(rules, d); err != nil {
		return d, fmt.Errorf("its rules: %w", err)
	}
	return d, nil
}

// A deploymentScanner decodes rows of deployments.
type deploymentScanner struct {
	s                                                              *Store
	ids                                                            []string // of the definitions that are wanted, empty for all
	names                                                          storage.Decoder
	guid, domain, active, healthy, others, rules, settings, labels sql.RawBytes
	strategy, instances, epoch, index                              int64
}

// bytes is how much the columns hold that may be long.
func (x *deploymentScanner) bytes() int {
	return len(x.others) + len(x.rules) + len(x.settings) + len(x.labels)
}

// bare makes a deployment of the columns that have been read, without the
// settings. It has labels if theirs is one of them.
func (x *deploymentScanner) bare() (e entry[*lrp.Deployment]) {
	guid := string(x.guid)
	// Most deployments have one definition, and often its id is the process guid.
	name := func(b sql.RawBytes) string {
		if string(b) == guid {
			return guid
		}
		return x.names.Name(b)
	}
	active := name(x.active)
	healthy := active
	if string(x.healthy) != active {
		healthy = name(x.healthy)
	}
	d, err := bareDeployment(guid, x.names.Name(x.domain), x.strategy, x.instances, active, healthy, x.epoch, x.index, x.others, x.rules)
	if err == nil && len(x.labels) > 0 {
		if err = storage.Decode(x.labels, &d.Labels); err != nil {
			err = fmt.Errorf("its labels: %w", err)
		}
	}
	e.value = d
	if err != nil {
		e.err = &storage.CorruptError{Key: storage.DeploymentKey(guid), Err: err}
	}
	return e
}

// withSettings adds the settings to a bare deployment.
func (x *deploymentScanner) withSettings() (entry[*lrp.Deployment], error) {
	e := x.bare()
	if e.err != nil {
		return e, nil
	}
	rules, labels := storage.RulesOf(e.value), e.value.Labels
	settings, err := x.s.sealer.open(x.settings, settingsPlace(e.value.ProcessGUID))
	if err == nil {
		err = storage.Decode(settings, &e.value.Settings)
	}
	if err == nil && e.value.Instances != int(x.instances) {
		err = fmt.Errorf("its settings say %d instances, its row %d", e.value.Instances, x.instances)
	}
	if err != nil {
		c, end := corrupt[*lrp.Deployment](storage.DeploymentKey(e.value.ProcessGUID), err)
		c.value = e.value
		return c, end
	}
	rules.Set(e.value)
	e.value.Labels = labels
	return e, nil
}

// full adds what a bare deployment lacks, except the definitions that are wanted,
// of which addDefinition then adds each that is there.
func (x *deploymentScanner) full() (entry[*lrp.Deployment], error) {
	e, err := x.withSettings()
	switch {
	case e.value == nil:
	case len(x.ids) == 0:
		e.value.Definitions = make(map[string]lrp.Definition, len(e.value.Definitions))
	default:
		for _, id := range x.ids {
			delete(e.value.Definitions, id)
		}
	}
	return e, err
}

const bareColumns = "process_guid, domain, update_strategy, instances, active_definition_id, healthy_definition_id, tag_epoch, tag_index, other_definition_ids, rules"

// Deployments implements storage.Reader.
func (r *reader) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	oneStatement := f.Bare || f.WithoutDefinitions
	if !oneStatement && len(f.ProcessGUIDs) == 1 {
		return list(ctx, r, "listing deployments", true, func() page[*lrp.Deployment] { return r.deploymentPage(f) })
	}
	return list(ctx, r, "listing deployments", oneStatement, func() page[*lrp.Deployment] { return r.deploymentPages(f) })
}

// deploymentPage reads the whole deployment of the only process that f names, in one
// statement.
func (r *reader) deploymentPage(f storage.DeploymentFilter) page[*lrp.Deployment] {
	return func(ctx context.Context, q dialect.Querier) (entries []entry[*lrp.Deployment], last bool, err error) {
		if isImpossible(f.ProcessGUIDs[0]) {
			return nil, true, nil
		}
		e, err := r.s.queryDeployment(ctx, q, f.ProcessGUIDs[0], f.DefinitionIDs, false)
		if err != nil || e.value == nil {
			return nil, true, err
		}
		if e.err != nil {
			f.Selector = executor.Selector{} // nobody knows its labels
		}
		if f.Match(e.value) {
			entries = append(entries, e)
		}
		return entries, true, nil
	}
}

func (r *reader) deploymentPages(f storage.DeploymentFilter) page[*lrp.Deployment] {
	s := r.s
	scanner := deploymentScanner{s: s, ids: f.DefinitionIDs}
	match := f.Matcher()
	corrupt := storage.DeploymentFilter{ProcessGUIDs: f.ProcessGUIDs, Domains: f.Domains} // whose labels nobody knows
	matchCorrupt := corrupt.Matcher()
	var key []any
	var guids *names
	if len(f.ProcessGUIDs) > 0 {
		guids = newNames(f.ProcessGUIDs)
	}
	pages, size := 0, newPortion(firstPage)
	if f.Bare {
		size.later = laterPage
	}
	columns, read := bareColumns+", labels, settings", (*deploymentScanner).full
	switch {
	case f.Bare:
		columns, read = bareColumns, func(x *deploymentScanner) (entry[*lrp.Deployment], error) { return x.bare(), nil }
	case f.WithoutDefinitions:
		read = (*deploymentScanner).withSettings
	}
	selects := !f.Selector.IsZero()
	if f.Bare && selects {
		columns += ", labels"
	}
	return func(ctx context.Context, q dialect.Querier) (entries []entry[*lrp.Deployment], last bool, err error) {
		w := where{d: s.d}
		domains := keep[string]
		switch {
		case guids != nil:
			guids.want(&w, tables.Deployments.Key)
		case looksUp(f.Domains, pages, domainPages):
			domains = lookUp
		default:
			w.walk = true
		}
		domains(&w, "domain", dialect.Text, f.Domains, textArg)
		if guids == nil {
			w.after(tables.Deployments.Key, key)
		}
		query := w.page(columns, s.table("deployments"), tables.Deployments.Key, size.rows)
		rows, err := q.QueryContext(ctx, query, w.args...)
		if err != nil {
			return nil, false, err
		}
		x := &scanner
		dest := []any{&x.guid, &x.domain, &x.strategy, &x.instances, &x.active, &x.healthy, &x.epoch, &x.index, &x.others, &x.rules}
		if !f.Bare {
			dest = append(dest, &x.labels, &x.settings)
		} else if selects {
			dest = append(dest, &x.labels)
		}
		entries = make([]entry[*lrp.Deployment], 0, size.rows)
		err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			e, err := read(x)
			if err != nil {
				return err
			}
			key = []any{e.value.ProcessGUID}
			kept := 0
			if e.err == nil && match(e.value) || e.err != nil && matchCorrupt(e.value) {
				kept = x.bytes()
				if f.Bare {
					e.value.Labels = nil
				}
				entries = append(entries, e)
			}
			return size.took(kept)
		})
		if err == nil && !f.Bare && !f.WithoutDefinitions && len(entries) > 0 {
			whole := 0
			if whole, err = s.addDefinitions(ctx, q, entries, f.DefinitionIDs); err == nil && whole < len(entries) {
				entries = entries[:whole]
				key = []any{entries[whole-1].value.ProcessGUID}
				size.shorten(whole)
			}
		}
		last = size.next()
		if guids != nil {
			last = guids.seen(key, !last)
		}
		pages++
		return entries, last, err
	}
}

// addDefinitions completes the deployments of a page, which are in order, with the
// definitions that are wanted. It ends when it has read pageBytes, and returns how many
// deployments have all of theirs by then, at least one.
func (s *Store) addDefinitions(ctx context.Context, q dialect.Querier, entries []entry[*lrp.Deployment], ids []string) (whole int, err error) {
	guids := make([]any, s.d.Padded(len(entries)))
	byGUID := make(map[string]*entry[*lrp.Deployment], len(entries))
	for i := range guids {
		e := &entries[min(i, len(entries)-1)]
		guids[i] = e.value.ProcessGUID
		byGUID[e.value.ProcessGUID] = e
	}
	wanted, args := s.wantedDefinitions("definition_id", ids)
	w := where{d: s.d}
	w.oneOf("process_guid", dialect.Text, guids)
	query := s.d.Rebind("SELECT process_guid, definition_id, data FROM " + s.table("definitions") + w.String() + wanted + " ORDER BY process_guid")
	rows, err := q.QueryContext(ctx, query, append(w.args, args...)...)
	if err != nil {
		return 0, err
	}
	var guid, id, present string
	var data sql.RawBytes
	bytes := 0
	whole = len(entries)
	err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
		if err := rows.Scan(&guid, &id, &data); err != nil {
			return err
		}
		if guid != present && bytes >= pageBytes {
			whole = slices.IndexFunc(entries, func(e entry[*lrp.Deployment]) bool { return e.value.ProcessGUID == guid })
			return dialect.ErrEnough
		}
		present = guid
		bytes += len(data)
		e := byGUID[guid]
		if e.err != nil {
			return nil
		}
		return s.addDefinition(e, id, data)
	})
	if err != nil {
		return 0, err
	}
	for i := range entries[:whole] {
		checkWhole(&entries[i])
	}
	return whole, nil
}

// wantedDefinitions is the further condition on the definitions of a deployment,
// empty for all. Of too many ids it lets all pass, and addDefinition selects.
func (s *Store) wantedDefinitions(column string, ids []string) (condition string, args []any) {
	if len(ids) == 0 || len(ids) > maxPushed {
		return "", nil
	}
	values := possible(ids, textArg)
	if len(values) == 1 && !s.d.Arrays { // a list, in which MariaDB does not see a key, would read the data of all
		return " AND " + column + " = ?", values
	}
	w := where{d: s.d}
	w.oneOf(column, dialect.Text, values)
	return " AND " + w.conditions[0], w.args
}

// addDefinition adds a definition, unless only its id is wanted, which is there
// already.
func (s *Store) addDefinition(e *entry[*lrp.Deployment], id string, data []byte) error {
	if _, there := e.value.Definitions[id]; there {
		return nil
	}
	var definition lrp.Definition
	plain, err := s.sealer.open(data, definitionPlace(e.value.ProcessGUID, id))
	if err == nil {
		err = storage.Decode(plain, &definition)
	}
	if errors.Is(err, ErrKey) {
		return err
	}
	if err != nil {
		e.err = &storage.CorruptError{Key: storage.DeploymentKey(e.value.ProcessGUID), Err: fmt.Errorf("definition %q: %w", id, err)}
		return nil
	}
	e.value.Definitions[id] = definition
	return nil
}

// addRevisions adds the history of a deployment. It leaves out what it cannot
// decode, so that the deployment can still be changed; the next change drops that.
func (s *Store) addRevisions(d *lrp.Deployment, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	plain, err := s.sealer.open(data, revisionsPlace(d.ProcessGUID))
	if err == nil {
		err = storage.DecodeRevisions(plain, d)
	}
	if errors.Is(err, ErrKey) {
		return err
	}
	if err != nil {
		s.options.Logger.Warn("revisions of a deployment cannot be decoded and are left out", "process", d.ProcessGUID, "kept", len(d.Revisions), "err", err)
	}
	return nil
}

// checkWhole refuses a deployment without its active definition.
func checkWhole(e *entry[*lrp.Deployment]) {
	d := e.value
	if _, has := d.Definitions[d.ActiveDefinitionID]; !has && e.err == nil {
		e.err = &storage.CorruptError{
			Key: storage.DeploymentKey(d.ProcessGUID),
			Err: fmt.Errorf("its active definition %q is missing", d.ActiveDefinitionID),
		}
	}
}

// Deployment implements storage.Reader.
func (r *reader) Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error) {
	return one(ctx, r, "reading a deployment", storage.DeploymentKey(processGUID),
		func(ctx context.Context, q dialect.Querier, guid string) (entry[*lrp.Deployment], error) {
			return r.s.queryDeployment(ctx, q, guid, nil, true)
		})
}

// queryDeployment reads a deployment and its definitions in one statement, and
// so from one moment, with its revisions or without. If ids are given, it reads
// no other definitions. The entry has no value if there is none.
func (s *Store) queryDeployment(ctx context.Context, q dialect.Querier, guid string, ids []string, revised bool) (e entry[*lrp.Deployment], err error) {
	t := s.table
	history := "NULL"
	if revised {
		history = "d.revisions"
	}
	wanted, args := s.wantedDefinitions("f.definition_id", ids)
	query := s.d.Rebind("SELECT d.process_guid, d.domain, d.update_strategy, d.instances, d.active_definition_id, d.healthy_definition_id," +
		" d.tag_epoch, d.tag_index, d.other_definition_ids, d.rules, d.labels, d.settings, " + history + ", f.definition_id, f.data FROM " + t("deployments") + " d LEFT JOIN " +
		t("definitions") + " f ON f.process_guid = d.process_guid" + wanted + " WHERE d.process_guid = ?")
	rows, err := q.QueryContext(ctx, query, append(args, guid)...)
	if err != nil {
		return e, err
	}
	x := deploymentScanner{s: s, ids: ids}
	var id sql.NullString
	var data, revisions sql.RawBytes
	err = dialect.ScanAll(rows, func(rows *sql.Rows) (err error) {
		if err := rows.Scan(&x.guid, &x.domain, &x.strategy, &x.instances, &x.active, &x.healthy, &x.epoch, &x.index,
			&x.others, &x.rules, &x.labels, &x.settings, &revisions, &id, &data); err != nil {
			return err
		}
		if e.value == nil {
			if e, err = x.full(); err == nil && e.err == nil {
				err = s.addRevisions(e.value, revisions)
			}
			if err != nil {
				return err
			}
		}
		if e.err != nil || !id.Valid {
			return nil
		}
		return s.addDefinition(&e, id.String, data)
	})
	if err == nil && e.value != nil {
		checkWhole(&e)
	}
	return e, err
}
