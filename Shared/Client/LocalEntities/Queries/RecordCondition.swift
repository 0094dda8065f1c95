/// A condition on rows of a Swift type, by key paths: `\.status == "open" && \.priority > 2`.
///
/// A value is compared in its coded form, so an enum with raw values works too. Comparison with `nil` is IS_NULL. As in
/// SQL, null fulfils no other comparison.
public struct RecordCondition<Record: EntityRecord>: Sendable, Hashable {
    /// The condition with attributes by name.
    public let condition: EntityCondition

    /// Makes a condition with attributes by name, for joined rows and for the row's state.
    public init(_ condition: EntityCondition) { self.condition = condition }

    /// Makes a test of a member with a value.
    public static func test<Value: Codable>(
        _ path: KeyPath<Record, Value>, _ comparison: AttributeTest.Comparison, _ value: Value
    ) -> RecordCondition {
        let attribute = Self.attribute(path)
        guard let operand = RecordCoder.attribute(of: value, attribute, in: Record.entityType) else {
            switch comparison {
            case .equal: return RecordCondition(.test(attribute, .isNull))
            case .notEqual: return RecordCondition(.test(attribute, .notNull))
            default: return RecordCondition(.test(attribute, comparison, .null))
            }
        }
        return RecordCondition(.test(attribute, comparison, operand))
    }

    /// Makes a test of an optional member with a value.
    public static func test<Value: Codable>(
        _ path: KeyPath<Record, Value?>, _ comparison: AttributeTest.Comparison, _ value: Value
    ) -> RecordCondition {
        let attribute = Self.attribute(path)
        let operand = RecordCoder.attribute(of: value, attribute, in: Record.entityType)
        return RecordCondition(.test(attribute, comparison, operand ?? .null))
    }

    /// Both conditions hold.
    public static func && (left: RecordCondition, right: RecordCondition) -> RecordCondition {
        RecordCondition(left.condition && right.condition)
    }
    /// At least one condition holds.
    public static func || (left: RecordCondition, right: RecordCondition) -> RecordCondition {
        RecordCondition(left.condition || right.condition)
    }
    /// The condition does not hold.
    public static prefix func ! (condition: RecordCondition) -> RecordCondition {
        RecordCondition(!condition.condition)
    }

    /// The name of the attribute that a key path leads to. For any other path it is a name that no type has, so that
    /// the query fails with `EntityError.noSuchAttribute`.
    static func attribute(_ path: PartialKeyPath<Record>) -> String {
        let name = try? RecordMembers(of: Record.self).name(of: path)
        return name ?? "\(path)".replacing(".", with: " ")
    }
}

/// The member equals the value; IS_NULL for nil.
public func == <Record: EntityRecord, Value: Codable>(
    path: KeyPath<Record, Value>, value: Value
) -> RecordCondition<Record> { .test(path, .equal, value) }

/// The member differs from the value; NOT_NULL for nil.
public func != <Record: EntityRecord, Value: Codable>(
    path: KeyPath<Record, Value>, value: Value
) -> RecordCondition<Record> { .test(path, .notEqual, value) }

/// The member is less than the value.
public func < <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value>, value: Value
) -> RecordCondition<Record> { .test(path, .lessThan, value) }

/// The member is less than the value.
public func < <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value?>, value: Value
) -> RecordCondition<Record> { .test(path, .lessThan, value) }

/// The member is less than the value or equals it.
public func <= <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value>, value: Value
) -> RecordCondition<Record> { .test(path, .lessEqual, value) }

/// The member is less than the value or equals it.
public func <= <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value?>, value: Value
) -> RecordCondition<Record> { .test(path, .lessEqual, value) }

/// The member is greater than the value.
public func > <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value>, value: Value
) -> RecordCondition<Record> { .test(path, .greaterThan, value) }

/// The member is greater than the value.
public func > <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value?>, value: Value
) -> RecordCondition<Record> { .test(path, .greaterThan, value) }

/// The member is greater than the value or equals it.
public func >= <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value>, value: Value
) -> RecordCondition<Record> { .test(path, .greaterEqual, value) }

/// The member is greater than the value or equals it.
public func >= <Record: EntityRecord, Value: Codable & Comparable>(
    path: KeyPath<Record, Value?>, value: Value
) -> RecordCondition<Record> { .test(path, .greaterEqual, value) }
