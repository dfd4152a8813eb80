package config

import "net"

// Metrics holds the settings of the metrics.
type Metrics struct {
	// Listen is the address of a listener of their own, or MetricsOff. If it is empty, they are
	// on that of the API, without what names orgs.
	Listen string `mapstructure:"listen" yaml:"listen"`
}

// MetricsOff is the value of Metrics.Listen for no metrics.
const MetricsOff = "off"

// check calls invalid if the address is invalid.
func (m Metrics) check(invalid func(key, format string, args ...any)) {
	if m.Listen == "" || m.Listen == MetricsOff {
		return
	}
	if _, _, err := net.SplitHostPort(m.Listen); err != nil {
		invalid("metrics.listen", "%q (use host:port, such as 127.0.0.1:9090, or off)", m.Listen)
	}
}
