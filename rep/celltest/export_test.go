package celltest

// Sentences are the names of all cases, with their groups.
func Sentences() (list []string) {
	for _, g := range groups {
		for _, c := range g.cases {
			list = append(list, g.subject+"/"+c.sentence)
		}
	}
	return list
}
