package roles

import "strings"

// decideBelowAPI are the paths below /api that client libraries call to decide flags.
var decideBelowAPI = []string{
	"/api/feature_flag", "/api/feature_flag/local_evaluation",
	"/api/projects/:project_id/feature_flags/local_evaluation",
	"/api/projects/:project_id/feature_flags/:id/remote_config",
	"/api/early_access_features", "/api/product_tours", "/api/surveys", "/api/web_experiments",
}

// ForPath returns the roles of which a server needs one to serve a path of the public
// address; none for paths that every server has. The path is the pattern of the route.
func ForPath(path string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "batch", "capture", "e", "engage", "i", "report", "s", "track":
		return []string{Capture}
	case "decide", "flags", "ofrep":
		return []string{Decide}
	case "array", "static":
		return []string{Capture, Decide}
	case "console", "invitation", "reset-password", "sign-in":
		return []string{Manage}
	case "api":
		return forAPI(path)
	}
	return nil
}

func forAPI(path string) []string {
	if path == "/api/push_subscriptions" {
		return []string{Capture}
	}
	for _, p := range decideBelowAPI {
		if path == p {
			return []string{Decide}
		}
	}
	return []string{Manage}
}
