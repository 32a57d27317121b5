package pool

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestProfiles(t *testing.T) {
	for name, tokens := range map[string]int{"8B": 421_000, "32B": 307_000, "70B": 461_000} {
		c, ok := Default(name)
		if err := c.Validate(); !ok || err != nil {
			t.Errorf("profile %s: %v, %v", name, ok, err)
		}
		if c.Profile != name || c.KVTokens != tokens {
			t.Errorf("profile %s: %+v", name, c)
		}
	}
	c, _ := Default("8B")
	r := c.Rates()
	for _, f := range []struct{ got, want float64 }{
		{r.Step, 6.9e-3}, {r.Seq, 4.4e-6}, {r.Context, 76e-9}, {r.Token, 27.8e-6}, {r.Chunk, 8192},
	} {
		if math.Abs(f.got-f.want) > 1e-15 {
			t.Errorf("rates %+v: %v, want %v", r, f.got, f.want)
		}
	}
	if c, ok := Default("9B"); ok || c.Validate() == nil {
		t.Errorf("profile 9B: %+v", c)
	}
}

func TestValidateNamesEveryKey(t *testing.T) {
	good, _ := Default("32B")
	for _, c := range []struct {
		key string
		set func(*Config)
	}{
		{"profile", func(c *Config) { c.Profile = "7B" }},
		{"step", func(c *Config) { c.Step = 0 }},
		{"step", func(c *Config) { c.Step = time.Hour }},
		{"per_sequence", func(c *Config) { c.PerSequence = -1 }},
		{"per_context_token", func(c *Config) { c.PerContextToken = -1 }},
		{"per_prompt_token", func(c *Config) { c.PerPromptToken = 0 }},
		{"per_prompt_token", func(c *Config) { c.PerPromptToken = -1 }},
		{"chunk", func(c *Config) { c.Chunk = 0 }},
		{"kv_tokens", func(c *Config) { c.KVTokens = -5 }},
		{"seats", func(c *Config) { c.Seats = 0 }},
		{"seats", func(c *Config) { c.Seats = 1<<30 + 1 }},
		{"output_tokens", func(c *Config) { c.OutputTokens = 0 }},
		{"max_kv_percent", func(c *Config) { c.MaxKVPercent = 0 }},
		{"max_kv_percent", func(c *Config) { c.MaxKVPercent = 101 }},
		{"max_backlog", func(c *Config) { c.MaxBacklog = -1 }},
		{"max_backlog", func(c *Config) { c.MaxBacklog = time.Hour + 1 }},
	} {
		bad := good
		c.set(&bad)
		err := bad.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), c.key+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.key, err)
		}
	}
	if err := (Config{Profile: "8B"}).Validate(); strings.Count(err.Error(), "\n") != 6 {
		t.Errorf("seven faults expected at once:\n%v", err)
	}
	free := good
	free.PerSequence, free.PerContextToken = 0, 0
	if err := free.Validate(); err != nil {
		t.Errorf("steps that cost the same for any load are valid: %v", err)
	}
}
