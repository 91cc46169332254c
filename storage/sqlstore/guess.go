package sqlstore

// A verb is what a guess does with the rows of a table.
type verb uint8

// The verbs.
const (
	creates verb = iota // rows of all columns; none may be there
	changes             // rows of all columns and the version before; all must be there
	removes             // rows of the key and the version; all must be there
	keeps               // the same, and they stay as they are
	drops               // rows of the key; whether they are there does not matter
)

// definitionsTable is that of the definitions, by their deployment.
var definitionsTable = table{name: definitionTable.name, key: deploymentTable.key, kinds: deploymentTable.keyKinds()}

// A part is one of the things that a guess may do.
type part struct {
	verb
	*table
}

// width is how many values a row has.
func (p *part) width() int {
	switch p.verb {
	case creates:
		return len(p.kinds)
	case changes:
		return len(p.kinds) + len(p.version)
	case drops:
		return len(p.key)
	default:
		return len(p.key) + len(p.version)
	}
}

// parts are all of them. The statements of MySQL have this order.
var parts = [...]part{
	{keeps, &leaseTable},
	{keeps, &lrpTable}, {keeps, &deploymentTable},
	{removes, &lrpTable}, {changes, &lrpTable}, {creates, &lrpTable},
	{removes, &deploymentTable}, {drops, &definitionsTable}, {drops, &definitionTable},
	{changes, &deploymentTable}, {creates, &deploymentTable}, {creates, &definitionTable},
	{removes, &taskTable}, {changes, &taskTable}, {creates, &taskTable},
}

// A guess is a group of commits that are all taken to succeed.
type guess struct {
	rows [len(parts)][]any // flat lists
	// data is the row of the log, which has events of them.
	events int64
	data   []byte
	token  int64
	// least and most are where the log may end before: not below what was seen of
	// it, and where it ended if something comes from memory.
	least, most int64
}

// add adds one or more rows to the part of a verb and a table.
func (g *guess) add(v verb, t *table, rows ...any) {
	for i := range parts {
		if parts[i].verb == v && parts[i].table == t {
			g.rows[i] = append(g.rows[i], rows...)
		}
	}
}

// guessStatements make the statements of guesses for the tables of one store. They may
// be used by several goroutines at once.
type guessStatements interface {
	// calls are the statements between the beginning of a transaction and its
	// COMMIT, and newest is told where the log ends then. They fail with an error
	// of the class guarded if something is not as it was guessed.
	calls(g *guess, newest func(int64)) []call
	// nextOnly reports whether a row can be changed to its next version only.
	nextOnly() bool
}

// newGuessStatements returns nil for a database where round trips cost nothing. table makes
// the name of a table from the one that package tables has.
func newGuessStatements(d *dialect, table func(name string) string) guessStatements {
	switch d.dir {
	case "mysql":
		return newMysqlStatements(d, table)
	case "postgres":
		return &postgresStatements{d: d, table: table}
	}
	return nil
}
