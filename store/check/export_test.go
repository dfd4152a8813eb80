package check

// WithMaxKnown returns options with another limit of the commits whose facts are compared.
func (o Options) WithMaxKnown(n int) Options {
	o.maxKnown = n
	return o
}
