package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// azureHeader is the first line of Azure's traces.
const azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens"

// azureTimes is how they write times: that of 2023, and that of 2024 with an offset.
var azureTimes = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05-07:00"}

// azureEpoch is the time 0 of rows before Open counts from the first.
var azureEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func azureRow(line string) (row, error) {
	cells := strings.Split(line, ",")
	if len(cells) != 3 {
		return row{}, fmt.Errorf("%d cells, not 3", len(cells))
	}
	at, err := azureTime(cells[0])
	if err != nil {
		return row{}, err
	}
	prompt, err := count("ContextTokens", cells[1])
	if err != nil {
		return row{}, err
	}
	output, err := count("GeneratedTokens", cells[2])
	if err != nil {
		return row{}, err
	}
	return row{at: at, prompt: prompt, output: output}, nil
}

func azureTime(s string) (time.Duration, error) {
	for _, layout := range azureTimes {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Sub(azureEpoch), nil // saturates; row.check bounds it
		}
	}
	return 0, fmt.Errorf("TIMESTAMP %q is not written as %q", s, azureTimes[0]+".9999999")
}

func count(name, cell string) (int, error) {
	n, err := strconv.ParseInt(cell, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a whole number", name, cell)
	}
	return tokens(n), given(field{name, &n})
}
