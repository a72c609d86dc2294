package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// mutant is one small change of the source that tests should notice.
type mutant struct {
	id     int
	file   string // base name
	line   int
	fn     string // function with its receiver, or "var" for a package-level initializer
	change string // before -> after, on one line
	nth    int    // counts equal changes of one function, from 1
}

// key names a mutant by function and text, so that it survives edits elsewhere in the file.
func (m *mutant) key() string {
	if m.nth > 1 {
		return fmt.Sprintf("%s: %s #%d", m.fn, m.change, m.nth)
	}
	return m.fn + ": " + m.change
}

func (m *mutant) place() string { return m.file + ":" + strconv.Itoa(m.line) }

// mutator finds the mutants of a package and rewrites its files so that each mutant is
// a condition on its number. Text is inserted and never a line break: positions in panics and
// test failures stay right.
type mutator struct {
	fset    *token.FileSet
	info    *types.Info
	pkg     *types.Package
	mutants []*mutant
	seen    map[string]int

	// Of the file and function at hand.
	file    *ast.File
	name    string
	source  []byte
	fn      string
	results []*ast.FuncType // of the enclosing functions, innermost last
	edits   []edit
	covered map[ast.Expr]bool // expressions that a mutant of their parent already negates
}

// edit inserts text at an offset, in place of remove bytes.
type edit struct {
	at, remove int
	text       string
	closing    bool
}

func newMutator(fset *token.FileSet, info *types.Info, pkg *types.Package) *mutator {
	return &mutator{fset: fset, info: info, pkg: pkg, seen: map[string]int{}}
}

// rewrite returns the source of the file with all its mutants.
func (m *mutator) rewrite(name string, file *ast.File, source []byte) []byte {
	m.file, m.name, m.source, m.edits, m.covered = file, name, source, nil, map[ast.Expr]bool{}

	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				m.fn = functionName(d)
				m.results = []*ast.FuncType{d.Type}
				m.walk(d.Body)
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				m.fn, m.results = "var", nil
				m.walk(d)
			}
		}
	}
	return m.apply()
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

func (m *mutator) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			m.results = append(m.results, n.Type)
			m.walk(n.Body)
			m.results = m.results[:len(m.results)-1]
			return false

		case *ast.BlockStmt:
			m.statements(n.List)
		case *ast.CaseClause:
			m.statements(n.Body)
		case *ast.CommClause:
			m.statements(n.Body)

		case *ast.IfStmt:
			m.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				m.condition(n.Cond)
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				m.cases(n.Body)
			}

		case *ast.BinaryExpr:
			m.binary(n)
		case *ast.UnaryExpr:
			m.unary(n)
		}
		return true
	})
}

// cases negates the conditions of a switch without a tag.
func (m *mutator) cases(body *ast.BlockStmt) {
	for _, clause := range body.List {
		for _, expr := range clause.(*ast.CaseClause).List {
			m.condition(expr)
		}
	}
}

// condition negates a condition. Chains of && and || lose an operand instead.
func (m *mutator) condition(cond ast.Expr) {
	cond = ast.Unparen(cond)
	if !m.isBool(cond) {
		return
	}
	if b, ok := cond.(*ast.BinaryExpr); ok && isLogical(b.Op) {
		return
	}
	m.negate(cond)
}

func (m *mutator) negate(e ast.Expr) {
	m.covered[e] = true
	text := m.text(e)
	id := m.add(e, text+" -> "+negation(e, text))
	m.wrap(e, fmt.Sprintf("(mutantOn(%d) != (", id), "))")
}

var opposite = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
}

func negation(e ast.Expr, text string) string {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return text[1:]
		}
	case *ast.BinaryExpr:
		return "!(" + text + ")"
	case *ast.Ident:
		switch e.Name {
		case "true":
			return "false"
		case "false":
			return "true"
		}
	}
	return "!" + text
}

func isLogical(op token.Token) bool { return op == token.LAND || op == token.LOR }

func (m *mutator) binary(n *ast.BinaryExpr) {
	if m.isConstant(n) {
		return
	}
	switch {
	case isLogical(n.Op):
		m.dropOperands(n)
	case opposite[n.Op] != 0:
		m.comparison(n)
	default:
		m.arithmetic(n)
	}
}

// dropOperands makes a mutant of each operand of a chain that leaves it out.
func (m *mutator) dropOperands(n *ast.BinaryExpr) {
	for _, operand := range []ast.Expr{n.X, n.Y} {
		if b, ok := operand.(*ast.BinaryExpr); ok && b.Op == n.Op {
			continue // visited as a chain of its own
		}
		if !m.isBool(operand) {
			continue
		}
		m.covered[ast.Unparen(operand)] = true
		text := m.text(operand)
		if n.Op == token.LAND {
			id := m.add(operand, text+" -> true")
			m.wrap(operand, fmt.Sprintf("(mutantOn(%d) || (", id), "))")
		} else {
			id := m.add(operand, text+" -> false")
			m.wrap(operand, fmt.Sprintf("(!mutantOn(%d) && (", id), "))")
		}
	}
}

// comparison moves the boundary of an order and negates a comparison that is not a condition.
func (m *mutator) comparison(n *ast.BinaryExpr) {
	if !m.covered[n] && m.isBool(n) {
		m.negate(n)
	}

	moved := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}[n.Op]
	helper := map[token.Token]string{token.LSS: "Less", token.LEQ: "LessOrEqual", token.GTR: "Greater", token.GEQ: "GreaterOrEqual"}[n.Op]
	operands, ok := m.typeName(m.info.TypeOf(n.X), types.IsOrdered)
	if moved == "" || !ok {
		return
	}
	id := m.add(n, m.text(n.X)+" "+n.Op.String()+" "+m.text(n.Y)+" -> "+moved)
	m.call(n, fmt.Sprintf("mutant%s[%s](%d, ", helper, operands, id))
}

var arithmetic = map[token.Token]struct {
	helper string
	other  string
	info   types.BasicInfo
}{
	token.ADD: {"Add", "-", types.IsInteger | types.IsFloat},
	token.SUB: {"Subtract", "+", types.IsInteger | types.IsFloat},
	token.MUL: {"Multiply", "/", types.IsInteger | types.IsFloat},
	token.QUO: {"Divide", "*", types.IsInteger | types.IsFloat},
	token.REM: {"Remainder", "*", types.IsInteger},
	token.AND: {"And", "|", types.IsInteger},
	token.OR:  {"Or", "&", types.IsInteger},
}

func (m *mutator) arithmetic(n *ast.BinaryExpr) {
	op, known := arithmetic[n.Op]
	if !known {
		return
	}
	operands, ok := m.typeName(m.info.TypeOf(n), op.info)
	if !ok {
		return
	}
	id := m.add(n, m.text(n.X)+" "+n.Op.String()+" "+m.text(n.Y)+" -> "+op.other)
	m.call(n, fmt.Sprintf("mutant%s[%s](%d, ", op.helper, operands, id))
}

func (m *mutator) unary(n *ast.UnaryExpr) {
	if m.isConstant(n) || m.covered[n] {
		return
	}
	switch n.Op {
	case token.NOT:
		if m.isBool(n) {
			m.negate(n)
		}
	case token.SUB:
		operand, ok := m.typeName(m.info.TypeOf(n), types.IsInteger|types.IsFloat)
		if !ok {
			return
		}
		id := m.add(n, m.text(n)+" -> "+m.text(n.X))
		m.wrap(n, fmt.Sprintf("mutantMinus[%s](%d, ", operand, id), ")")
		m.edits = append(m.edits, edit{at: m.offset(n.OpPos), remove: 1})
	default:
		// Other operators have no mutants.
	}
}

// statements drops statements of a block one at a time, and makes returns return zero values.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		if r, ok := s.(*ast.ReturnStmt); ok {
			m.returnZero(r)
		} else if m.isDroppable(s) {
			id := m.add(s, "drop "+m.text(s))
			m.wrap(s, fmt.Sprintf("if !mutantOn(%d) { ", id), " }")
		}
	}
}

func (m *mutator) isDroppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return !ok || !m.isPanic(call) && !m.isLog(call)
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && !slices.ContainsFunc(s.Lhs, isBlank)
	case *ast.BranchStmt:
		return s.Tok == token.CONTINUE || s.Tok == token.BREAK
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	}
	return false
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

func (m *mutator) isPanic(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && m.info.Uses[id] == types.Universe.Lookup("panic")
}

// isLog reports whether the call writes a log: tests need not notice its absence.
func (m *mutator) isLog(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	used := m.info.Uses[selector.Sel]
	return used != nil && used.Pkg() != nil && slices.Contains([]string{"log", "log/slog", "go.uber.org/zap"}, used.Pkg().Path())
}

// returnZero makes a mutant of a return with results: each is the zero of its type. A single
// bool is negated; the mutants of a comparison or of && and || inside it do so already.
func (m *mutator) returnZero(r *ast.ReturnStmt) {
	if len(r.Results) == 0 || len(m.results) == 0 {
		return
	}
	var zeros []string
	function := m.results[len(m.results)-1]
	for _, field := range function.Results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, m.zero(field.Type))
		}
	}

	if len(r.Results) == 1 && len(zeros) == 1 && m.isBool(r.Results[0]) {
		result := ast.Unparen(r.Results[0])
		switch result.(type) {
		case *ast.BinaryExpr, *ast.UnaryExpr:
		default:
			m.negate(result)
		}
		return
	}

	if len(r.Results) == len(zeros) && !slices.ContainsFunc(r.Results, func(e ast.Expr) bool { return !m.isZero(e) }) {
		return
	}
	values := strings.Join(zeros, ", ")
	id := m.add(r, m.text(r)+" -> "+values)
	m.edits = append(m.edits, edit{at: m.offset(r.Pos()), text: fmt.Sprintf("if mutantOn(%d) { return %s }; ", id, values)})
}

// zero returns an expression for the zero value of a type as it is written in the source.
func (m *mutator) zero(expr ast.Expr) string {
	switch t := m.info.TypeOf(expr).Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Signature:
		return "nil"
	case *types.Interface:
		if _, parameter := m.info.TypeOf(expr).(*types.TypeParam); !parameter {
			return "nil"
		}
	case *types.Basic:
		switch {
		case t.Info()&types.IsBoolean != 0:
			return "false"
		case t.Info()&types.IsNumeric != 0:
			return "0"
		case t.Info()&types.IsString != 0:
			return `""`
		}
	}
	return "*new(" + m.text(expr) + ")"
}

func (m *mutator) isZero(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return len(e.Elts) == 0 && m.info.TypeOf(e) != nil && isStruct(m.info.TypeOf(e))
	case *ast.Ident:
		if e.Name == "nil" {
			return true
		}
	}
	value := m.info.Types[e].Value
	return value != nil && slices.Contains([]string{"0", "false", `""`}, value.ExactString())
}

func isStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// isBool reports whether a comparison with a bool compiles and is not constant.
func (m *mutator) isBool(e ast.Expr) bool {
	basic, ok := m.info.TypeOf(e).(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0 && (!m.isConstant(e) || isBoolLiteral(e))
}

func isBoolLiteral(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && (id.Name == "true" || id.Name == "false")
}

func (m *mutator) isConstant(e ast.Expr) bool { return m.info.Types[e].Value != nil }

// typeName returns how the file writes a type whose values have the property. It refuses
// parameters of generic types, and types that the file does not import.
func (m *mutator) typeName(t types.Type, property types.BasicInfo) (string, bool) {
	if t == nil {
		return "", false
	}
	if _, parameter := types.Unalias(t).(*types.TypeParam); parameter {
		return "", false
	}
	basic, ok := t.Underlying().(*types.Basic)
	if !ok || basic.Info()&property == 0 || basic.Info()&types.IsUntyped != 0 {
		return "", false
	}
	written := true
	name := types.TypeString(t, func(p *types.Package) string {
		if p == m.pkg {
			return ""
		}
		name, ok := m.importName(p)
		written = written && ok
		return name
	})
	return name, written
}

func (m *mutator) importName(p *types.Package) (string, bool) {
	for _, spec := range m.file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path != p.Path() {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name, spec.Name.Name != "_" && spec.Name.Name != "."
		}
		return p.Name(), true
	}
	return "", false
}

// longestChange bounds the text of a mutant.
const longestChange = 160

func (m *mutator) add(n ast.Node, change string) int {
	if len(change) > longestChange {
		change = strings.ToValidUTF8(change[:longestChange], "") + "…"
	}
	added := &mutant{id: len(m.mutants) + 1, file: m.name, line: m.fset.Position(n.Pos()).Line, fn: m.fn, change: change}
	m.seen[added.key()]++
	added.nth = m.seen[added.key()]
	m.mutants = append(m.mutants, added)
	return added.id
}

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

// text is the source of a node on one line.
func (m *mutator) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(m.source[m.offset(n.Pos()):m.offset(n.End())])), " ")
}

func (m *mutator) wrap(n ast.Node, open, end string) {
	m.edits = append(m.edits,
		edit{at: m.offset(n.Pos()), text: open},
		edit{at: m.offset(n.End()), text: end, closing: true})
}

// call replaces an operator by the call of a helper.
func (m *mutator) call(n *ast.BinaryExpr, open string) {
	m.wrap(n, open, ")")
	m.edits = append(m.edits, edit{at: m.offset(n.OpPos), remove: len(n.Op.String()), text: ","})
}

// apply makes the edits. They were added from the outside in: at one offset the outer opens first
// and closes last.
func (m *mutator) apply() []byte {
	closings := slices.DeleteFunc(slices.Clone(m.edits), func(e edit) bool { return !e.closing })
	others := slices.DeleteFunc(slices.Clone(m.edits), func(e edit) bool { return e.closing })
	slices.Reverse(closings)
	ordered := append(closings, others...)
	slices.SortStableFunc(ordered, func(a, b edit) int { return cmp.Compare(a.at, b.at) })

	var out []byte
	at := 0
	for _, e := range ordered {
		out = append(out, m.source[at:e.at]...)
		out = append(out, e.text...)
		at = e.at + e.remove
	}
	return append(out, m.source[at:]...)
}
