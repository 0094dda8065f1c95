import GRDB

/// Compiles one test of one attribute to SQL.
struct TestCompiler {
    let compiler: QueryCompiler
    let test: AttributeTest

    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`, `invalidArgument`.
    func compiled() throws(EntityError) -> CompiledQuery {
        let left = try compiler.expression(test.attribute)
        guard test.comparison.applies(to: left.type) else {
            throw EntityError(
                .wrongDataType,
                "\(test.comparison.rawValue) does not apply to \(test.attribute) of type \(left.type.rawValue)")
        }
        switch test.comparison {
        case .isNull: return CompiledQuery("(\(left.sql) IS NULL)")
        case .notNull: return CompiledQuery("(\(left.sql) IS NOT NULL)")
        case .isIn, .notIn: return try list(left)
        default: break
        }
        let right = try operand(for: left)
        let (x, y) = (left.ordered, right.sql)
        switch test.comparison {
        // The first four cases are handled above.
        case .isNull, .notNull, .isIn, .notIn, .equal: return plain(x, "=", right)
        case .notEqual: return plain(x, "<>", right)
        case .lessThan: return plain(x, "<", right)
        case .lessEqual: return plain(x, "<=", right)
        case .greaterThan: return plain(x, ">", right)
        case .greaterEqual: return plain(x, ">=", right)
        case .like: return CompiledQuery("(\(x) LIKE \(y) ESCAPE '\\')", right.arguments)
        case .notLike: return CompiledQuery("(\(x) NOT LIKE \(y) ESCAPE '\\')", right.arguments)
        case .match: return CompiledQuery("(\(x) GLOB \(y))", right.arguments)
        case .notMatch: return CompiledQuery("(\(x) NOT GLOB \(y))", right.arguments)
        case .contains: return CompiledQuery("(instr(\(x), \(y)) > 0)", right.arguments)
        case .notContain: return CompiledQuery("(instr(\(x), \(y)) = 0)", right.arguments)
        case .startsWith: return CompiledQuery("(instr(\(x), \(y)) = 1)", right.arguments)
        case .notStartWith: return CompiledQuery("(instr(\(x), \(y)) <> 1)", right.arguments)
        case .endsWith: return end(x, "=", right)
        case .notEndWith: return end(x, "<>", right)
        }
    }

    private func plain(_ x: String, _ sign: String, _ right: CompiledQuery) -> CompiledQuery {
        CompiledQuery("(\(x) \(sign) \(right.sql))", right.arguments)
    }

    /// The end of the text with the pattern's length. For length 0, `substr` would return the whole text.
    private func end(_ x: String, _ sign: String, _ right: CompiledQuery) -> CompiledQuery {
        let tail =
            "CASE WHEN length(\(right.sql)) = 0 THEN substr(\(x), 1, 0) ELSE substr(\(x), -length(\(right.sql))) END"
        return CompiledQuery(
            "(\(tail) \(sign) \(right.sql))", right.arguments + right.arguments + right.arguments)
    }

    private func list(_ left: QueryCompiler.Expression) throws(EntityError) -> CompiledQuery {
        guard case .values(let values) = test.operand else {
            throw EntityError(.wrongDataType, "\(test.comparison.rawValue) needs a list of values")
        }
        var arguments: [DatabaseValue] = []
        for value in values { arguments.append(try argument(value, for: left)) }
        // SQLite treats null as not contained in an empty list.
        guard !arguments.isEmpty else {
            return plain(left.sql, test.comparison == .isIn ? "<>" : "=", CompiledQuery(left.sql))
        }
        let marks = Array(repeating: "?", count: arguments.count).joined(separator: ", ")
        let word = test.comparison == .isIn ? "IN" : "NOT IN"
        return CompiledQuery("(\(left.ordered) \(word) (\(marks)))", arguments)
    }

    private func operand(for left: QueryCompiler.Expression) throws(EntityError) -> CompiledQuery {
        switch test.operand {
        case .value(let value): return CompiledQuery("?", [try argument(value, for: left)])
        case .attribute(let name):
            let right = try compiler.expression(name)
            guard right.type == left.type else {
                throw EntityError(.wrongDataType, "\(test.attribute) and \(name) have different types")
            }
            return CompiledQuery(right.sql)
        case .nothing, .values:
            throw EntityError(.wrongDataType, "\(test.comparison.rawValue) needs one value")
        }
    }

    private func argument(
        _ value: AttributeValue, for left: QueryCompiler.Expression
    ) throws(EntityError) -> DatabaseValue {
        guard value != .null, let kept = value.converted(to: left.type) else {
            throw EntityError(
                .wrongDataType, "\(test.attribute) must be compared with \(left.type.rawValue); use IS_NULL for null")
        }
        switch test.comparison {
        case .like, .notLike, .match, .notMatch:
            guard (kept.asText ?? "").unicodeScalars.count <= QueryCompiler.longestPattern else {
                throw EntityError(
                    .invalidArgument, "a pattern can have at most \(QueryCompiler.longestPattern) characters")
            }
        default: break
        }
        return try FieldColumn.value(of: kept)
    }
}
