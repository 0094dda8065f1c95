/// Tests, put together (the neighbour's CompositeTest).
public indirect enum EntityCondition: Sendable, Hashable {
    case test(AttributeTest)
    /// All hold; true when there are none.
    case and([EntityCondition])
    /// One holds; false when there are none.
    case or([EntityCondition])
    case not(EntityCondition)

    /// A test with a value; with `isNull` and `notNull` it is left out.
    public static func test(
        _ attribute: String, _ comparison: Comparison, _ value: AttributeValue? = nil
    ) -> EntityCondition {
        .test(AttributeTest(attribute, comparison, value.map { .value($0) } ?? .nothing))
    }

    /// A test with another attribute.
    public static func test(
        _ attribute: String, _ comparison: Comparison, attribute other: String
    ) -> EntityCondition {
        .test(AttributeTest(attribute, comparison, .attribute(other)))
    }

    /// A test with several values, for `isIn` and `notIn`.
    public static func test(
        _ attribute: String, _ comparison: Comparison, values: [AttributeValue]
    ) -> EntityCondition {
        .test(AttributeTest(attribute, comparison, .values(values)))
    }

    /// Both hold.
    public static func && (left: EntityCondition, right: EntityCondition) -> EntityCondition { .and([left, right]) }
    /// One holds.
    public static func || (left: EntityCondition, right: EntityCondition) -> EntityCondition { .or([left, right]) }
    /// It does not hold.
    public static prefix func ! (condition: EntityCondition) -> EntityCondition { .not(condition) }
}
