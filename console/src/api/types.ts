// Names for the types of the management API that the pages use. schema.gen.d.ts is made
// from api/openapi.yaml by the build.
import type { components } from './schema.gen'

export type Schemas = components['schemas']
export type Flag = Schemas['FeatureFlag']
export type FlagWrite = Schemas['FeatureFlagWrite']
export type Filters = Schemas['Filters']
export type ConditionSet = Schemas['ConditionSet']
export type PropertyFilter = Schemas['PropertyFilter']
export type Variant = Schemas['Variant']
export type Project = Schemas['Project']
export type Me = Schemas['Me']
export type User = Schemas['User']
export type ActivityEntry = Schemas['ActivityEntry']
export type FlagUsage = Schemas['FlagUsage']
export type Explanation = Schemas['Explanation']
export type ExplainedSet = Schemas['ExplainedSet']
export type ExplainedFilter = Schemas['ExplainedFilter']
export type Cohort = Schemas['Cohort']
export type PropertyDefinition = Schemas['PropertyDefinition']
export type ApiErrorBody = Schemas['Error']
