# Everything is plain Go; these are names for the two scripts.
.PHONY: test ci
test:
	@scripts/test
ci:
	@.ci/run
