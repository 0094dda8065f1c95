/// A condition of tests. The Client Object API calls it CompositeTest (ENT5).
///
/// A query can have 2,000 tests, 30,000 values and 20 levels of conditions. A pattern can have 1,000 characters. Beyond
/// these limits a query fails with `invalidArgument`. Each `&&` or `||` adds a level, so make a condition of many tests
/// with `.and` or `.or` from a list, and compare with many values by `isIn`.
public indirect enum EntityCondition: Sendable, Hashable {
    case test(AttributeTest)
    /// True when all conditions hold, also for an empty list.
    case and([EntityCondition])
    /// True when at least one condition holds; false for an empty list.
    case or([EntityCondition])
    case not(EntityCondition)

    /// Makes a test with a value; `isNull` and `notNull` need none.
    public static func test(
        _ attribute: String, _ comparison: AttributeTest.Comparison, _ value: AttributeValue? = nil
    ) -> EntityCondition {
        .test(AttributeTest(attribute, comparison, value.map { .value($0) } ?? .nothing))
    }

    /// Makes a test with another attribute.
    public static func test(
        _ attribute: String, _ comparison: AttributeTest.Comparison, attribute other: String
    ) -> EntityCondition {
        .test(AttributeTest(attribute, comparison, .attribute(other)))
    }

    /// Makes a test with several values, for `isIn` and `notIn`.
    public static func test(
        _ attribute: String, _ comparison: AttributeTest.Comparison, values: [AttributeValue]
    ) -> EntityCondition {
        .test(AttributeTest(attribute, comparison, .values(values)))
    }

    /// The number of tests, at all levels.
    var testCount: Int {
        switch self {
        case .test: 1
        case .and(let parts), .or(let parts): parts.reduce(0) { $0 + $1.testCount }
        case .not(let part): part.testCount
        }
    }

    /// Both conditions hold.
    public static func && (left: EntityCondition, right: EntityCondition) -> EntityCondition { .and([left, right]) }
    /// At least one condition holds.
    public static func || (left: EntityCondition, right: EntityCondition) -> EntityCondition { .or([left, right]) }
    /// The condition does not hold.
    public static prefix func ! (condition: EntityCondition) -> EntityCondition { .not(condition) }
}
