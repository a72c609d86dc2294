package activity

import (
	"maps"
	"slices"
)

// The scopes of items that have no handler of their own for the log.
const (
	deadLetter         Scope = "DeadLetter"
	eventDefinition    Scope = "EventDefinition"
	propertyDefinition Scope = "PropertyDefinition"
	groupType          Scope = "GroupType"
	scheduledChange    Scope = "ScheduledChange"
	delivery           Scope = "NotificationDelivery"
	other              Scope = "Other" // of a route without a line
)

const (
	organization = "/api/organizations/:organization_id"
	project      = "/api/projects/:project_id"
)

// write is what a request does: to which kind of item, and the verb.
type write struct {
	scope    Scope
	activity string
}

// reading is a request that changes nothing.
var reading = write{}

// writes has each management route that is not read with GET. Most of them add entries of
// their own; these are for requests that added none, such as one that changed nothing.
var writes = map[string]write{
	"PATCH /api/session":                         {Session, Updated},
	"DELETE /api/session":                        {Session, "signed_out"},
	"PUT /api/users/@me/password":                {User, "password_changed"},
	"DELETE /api/users/@me/sessions":             {Session, "revoked"},
	"DELETE /api/users/@me/sessions/:session_id": {Session, "revoked"},
	"PATCH /api/users/@me":                       {User, Updated},
	"POST /api/personal_api_keys":                {PersonalKey, Created},
	"PATCH /api/personal_api_keys/:id":           {PersonalKey, Updated},
	"DELETE /api/personal_api_keys/:id":          {PersonalKey, Deleted},

	"PATCH " + organization:                                           {Organization, Updated},
	"DELETE " + organization + "/sessions/:session_id":                {Session, "revoked"},
	"POST " + organization + "/feature_flags/copy_flags":              {Flag, "copied"},
	"POST " + organization + "/projects":                              {Project, Created},
	"PATCH " + organization + "/projects/:project_id":                 {Project, Updated},
	"DELETE " + organization + "/projects/:project_id":                {Project, Deleted},
	"POST " + organization + "/invites":                               {Invite, Created},
	"DELETE " + organization + "/invites/:invite_id":                  {Invite, Deleted},
	"PATCH " + organization + "/members/:user_id":                     {Member, Updated},
	"DELETE " + organization + "/members/:user_id":                    {Member, Deleted},
	"PATCH " + organization + "/resource_access/:resource":            {Organization, Updated},
	"POST " + organization + "/roles":                                 {Role, Created},
	"PATCH " + organization + "/roles/:role_id":                       {Role, Updated},
	"DELETE " + organization + "/roles/:role_id":                      {Role, Deleted},
	"POST " + organization + "/roles/:role_id/role_memberships":       {RoleMember, Created},
	"DELETE " + organization + "/roles/:role_id/role_memberships/:id": {RoleMember, Deleted},

	"POST /api/projects":                                    {Project, Created},
	"PATCH " + project:                                      {Project, Updated},
	"DELETE " + project:                                     {Project, Deleted},
	"PATCH " + project + "/retention":                       {Project, Updated},
	"POST " + project + "/retention/preview":                reading,
	"PATCH " + project + "/rotate_secret_token":             {Project, Updated},
	"PATCH " + project + "/delete_secret_token_backup":      {Project, Updated},
	"POST " + project + "/keys":                             {ProjectKey, Created},
	"DELETE " + project + "/keys/:id":                       {ProjectKey, Deleted},
	"POST " + project + "/project_secret_api_keys":          {SecretKey, Created},
	"PATCH " + project + "/project_secret_api_keys/:id":     {SecretKey, Updated},
	"DELETE " + project + "/project_secret_api_keys/:id":    {SecretKey, Deleted},
	"POST " + project + "/project_secret_api_keys/:id/roll": {SecretKey, "rolled"},

	"POST " + project + "/feature_flags":                                                  {Flag, Created},
	"PUT " + project + "/feature_flags/:id":                                               {Flag, Updated},
	"PATCH " + project + "/feature_flags/:id":                                             {Flag, Updated},
	"DELETE " + project + "/feature_flags/:id":                                            {Flag, Deleted},
	"POST " + project + "/feature_flags/:id/rollback":                                     {Flag, "rolled_back"},
	"POST " + project + "/feature_flags/:id/dashboard":                                    {Flag, "dashboard"},
	"POST " + project + "/feature_flags/:id/create_static_cohort_for_flag":                {Flag, "create_static_cohort_for_flag"},
	"POST " + project + "/feature_flags/:id/enrich_usage_dashboard":                       {Flag, "enrich_usage_dashboard"},
	"POST " + project + "/feature_flags/:id/explain":                                      reading,
	"POST " + project + "/feature_flags/:parent_lookup_feature_flag_id/role_access":       {FlagAccess, Created},
	"DELETE " + project + "/feature_flags/:parent_lookup_feature_flag_id/role_access/:id": {FlagAccess, Deleted},
	"POST " + project + "/feature_flags/bulk_delete":                                      {Flag, Deleted},
	"POST " + project + "/feature_flags/bulk_keys":                                        reading,
	"POST " + project + "/feature_flags/explain":                                          reading,
	"POST " + project + "/feature_flags/user_blast_radius":                                reading,
	"POST " + project + "/scheduled_changes":                                              {scheduledChange, Created},
	"DELETE " + project + "/scheduled_changes/:id":                                        {scheduledChange, Deleted},
	"POST " + project + "/cohorts":                                                        {Cohort, Created},
	"PUT " + project + "/cohorts/:id":                                                     {Cohort, Updated},
	"PATCH " + project + "/cohorts/:id":                                                   {Cohort, Updated},
	"DELETE " + project + "/cohorts/:id":                                                  {Cohort, Deleted},
	"POST " + project + "/dashboards":                                                     {Dashboard, Created},
	"PATCH " + project + "/dashboards/:id":                                                {Dashboard, Updated},
	"DELETE " + project + "/dashboards/:id":                                               {Dashboard, Deleted},

	"POST " + project + "/actions":                                   {Action, Created},
	"PUT " + project + "/actions/:id":                                {Action, Updated},
	"PATCH " + project + "/actions/:id":                              {Action, Updated},
	"DELETE " + project + "/actions/:id":                             {Action, Deleted},
	"POST " + project + "/actions/:id/deliveries/:delivery_id/retry": {delivery, "retry"},
	"POST " + project + "/actions/:id/test_notification":             {Action, "test_notification"},
	"POST " + project + "/actions/preview":                           reading,
	"POST " + project + "/actions/preview_message":                   reading,
	"DELETE " + project + "/persons/:id":                             {Person, Deleted},
	"POST " + project + "/persons/:id/split":                         {Person, "split"},
	"PATCH " + project + "/dead_letters/:id":                         {deadLetter, Updated},
	"DELETE " + project + "/dead_letters/:id":                        {deadLetter, Deleted},
	"POST " + project + "/dead_letters/:id/replay":                   {deadLetter, "replay"},
	"POST " + project + "/dead_letters/replay":                       {deadLetter, "replay"},
	"POST " + project + "/dead_letters/delete":                       {deadLetter, "delete"},
	"PATCH " + project + "/event_definitions/:id":                    {eventDefinition, Updated},
	"DELETE " + project + "/event_definitions/:id":                   {eventDefinition, Deleted},
	"PATCH " + project + "/property_definitions/:id":                 {propertyDefinition, Updated},
	"DELETE " + project + "/property_definitions/:id":                {propertyDefinition, Deleted},
	"POST " + project + "/groups_types":                              {groupType, Created},
	"PATCH " + project + "/groups_types/:index":                      {groupType, Updated},
	"DELETE " + project + "/groups_types/:index":                     {groupType, Deleted},

	"PUT /api/plugins/:name/config":    {Plugin, "enabled"},
	"DELETE /api/plugins/:name/config": {Plugin, "disabled"},
	"POST /api/plugins/:name/check":    {Plugin, "check"},
	"POST /api/plugins/:name/pause":    {Plugin, "pause"},
	"POST /api/plugins/:name/release":  {Plugin, "release"},
	"POST /api/plugins/:name/restart":  {Plugin, "restart"},
	"POST /api/plugins/:name/resume":   {Plugin, "resume"},
	"POST /api/plugins/reload":         {Plugin, "reload"},
}

// Writes returns the management routes that the log has words for, as "METHOD pattern".
func Writes() []string { return slices.Sorted(maps.Keys(writes)) }
