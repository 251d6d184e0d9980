package codex

import "strings"

// Kinds of text in the user's role that no person typed.
const (
	wrapsContext = "context"    // instructions, environment, hooks
	wrapsShell   = "user_shell" // a command that the person ran
	wrapsAbort   = "aborted"    // a note that the turn was interrupted
)

// wrapperOf tells which program's text a message is, "" for none: one of its texts begins and
// ends with a known pair. Source: codex, contextual_user_message.rs.
func wrapperOf(texts []string) string {
	for _, text := range texts {
		text = strings.TrimSpace(text)
		for _, pair := range [...]struct{ open, end, kind string }{
			{"# AGENTS.md instructions for ", "</INSTRUCTIONS>", wrapsContext},
			{"<user_instructions>", "</user_instructions>", wrapsContext},
			{"<environment_context>", "</environment_context>", wrapsContext},
			{"<skill>", "</skill>", wrapsContext},
			{"<user_shell_command>", "</user_shell_command>", wrapsShell},
			{"<turn_aborted>", "</turn_aborted>", wrapsAbort},
			{"<subagent_notification>", "</subagent_notification>", wrapsContext},
			{"<additional_context>", "</additional_context>", wrapsContext},
			{"<environments_instructions>", "</environments_instructions>", wrapsContext},
			{"<apps_instructions>", "</apps_instructions>", wrapsContext},
			{"<skills_instructions>", "</skills_instructions>", wrapsContext},
			{"<plugins_instructions>", "</plugins_instructions>", wrapsContext},
			{"<hook_prompt", "</hook_prompt>", wrapsContext},
		} {
			if hasPrefixFold(text, pair.open) && hasSuffixFold(text, pair.end) {
				return pair.kind
			}
		}
	}
	return ""
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}
