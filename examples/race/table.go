package race

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Print writes the results side by side, and below why each came out so.
func Print(w io.Writer, results []Result) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "WAY\tREQUESTS\tSUCCEEDED\tREFUSED\tPROJECTS\tOVER BY\tTOOK")
	for _, r := range results {
		fmt.Fprintf(columns, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n",
			r.Way, r.Requests, r.Succeeded, r.Refused, r.Projects, r.OverBy, r.Took.Round(100*time.Microsecond))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.Way, r.Why); err != nil {
			return err
		}
	}
	return nil
}
