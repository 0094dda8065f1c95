/// What a configuration says of subscription parameters, read and checked.
package struct SubscriptionRules: Hashable, Sendable {
    /// One name that is declared.
    package struct Declaration: Hashable, Sendable {
        package var type: SubscriptionType
        /// Of a parameter: what holds where nobody has set a value.
        package var defaultValue: SubscriptionValue?
    }

    /// Nil: every oplog is for everybody.
    package let filter: SubscriptionFilter?
    /// The filter as it is written, without white space around it.
    package let filterText: String
    package let attributes: [String: Declaration]
    package let parameters: [String: Declaration]

    /// Reads and checks all three parts: what a filter names is declared, and what it compares is of one type.
    package init(_ text: SubscriptionText) throws(SubscriptionFault) {
        attributes = try Self.declarations(text.attributes, "an attribute", "attributes", withDefaults: false)
        parameters = try Self.declarations(text.parameters, "a parameter", "parameters", withDefaults: true)
        filterText = Self.trimmed(text.filter)
        guard !filterText.isEmpty else {
            filter = nil
            return
        }
        let parsed: SubscriptionFilter
        do throws(SubscriptionFault) {
            parsed = try SubscriptionFilter(filterText)
            // Operands stand in the tree in the order in which they were read.
            var reader = FilterReader(filterText)
            _ = try reader.filter()
            var check = TypeCheck(
                attributes: attributes, parameters: parameters, positions: reader.operandPositions[...])
            try check.check(parsed)
        } catch {
            throw SubscriptionFault(at: error.position, "filter, character \(error.position): \(error.reason)")
        }
        filter = parsed
    }

    private static func declarations(
        _ text: String, _ what: String, _ part: String, withDefaults: Bool
    ) throws(SubscriptionFault) -> [String: Declaration] {
        guard text.utf16.count <= Limits.subscriptionDeclarationUnits else {
            throw SubscriptionFault(
                at: 1, "\(part): at most \(Limits.subscriptionDeclarationUnits) characters")
        }
        var reader = FilterReader(text)
        do throws(SubscriptionFault) {
            return try reader.declarations(what, withDefaults: withDefaults)
        } catch {
            throw SubscriptionFault(at: error.position, "\(part), character \(error.position): \(error.reason)")
        }
    }

    private static func trimmed(_ text: String) -> String {
        var scalars = Substring(text).unicodeScalars
        let isSpace = { (scalar: Unicode.Scalar) in [" ", "\t", "\n", "\r"].contains(scalar) }
        while let first = scalars.first, isSpace(first) { scalars.removeFirst() }
        while let last = scalars.last, isSpace(last) { scalars.removeLast() }
        return String(Substring(scalars))
    }

    /// What is wrong with the attributes of a push; nil: they are as declared.
    package func fault(in given: SubscriptionValues) -> String? {
        for name in given.names {
            guard let declaration = attributes[name] else {
                return "attributes has \(name), which the configuration does not declare; leave it out or declare it."
            }
            guard let value = given[name], value.type == declaration.type else {
                return "attributes.\(name) is no \(declaration.type.rawValue); send one."
            }
            guard value.isStorable else {
                return """
                    attributes.\(name) has more than \(Limits.subscriptionValueUnits) characters or a NUL; send less.
                    """
            }
        }
        return nil
    }

    /// The filter with the values that it looks at: those of the device count before those of the user on the server,
    /// and those before the defaults. A value of another type than declared is as none.
    package func resolved(device: SubscriptionValues, user: SubscriptionValues) -> ResolvedFilter {
        guard let filter else { return .everything }
        var values = SubscriptionValues()
        for name in filter.parameters {
            let type = parameters[name]?.type
            let candidates = [device[name], user[name], parameters[name]?.defaultValue]
            values[name] = candidates.compactMap(\.self).first { $0.type == type }
        }
        return ResolvedFilter(filter: filter, text: filterText, values: values)
    }
}

extension SubscriptionRules {
    /// Walks a filter's operands with their positions.
    private struct TypeCheck {
        let attributes: [String: Declaration]
        let parameters: [String: Declaration]
        /// Of the operands that are still to come.
        var positions: ArraySlice<Int>

        mutating func check(_ filter: SubscriptionFilter) throws(SubscriptionFault) {
            switch filter {
            case .compare(let left, let comparison, let right):
                let type = try type(of: left)
                let place = positions.first ?? 0
                guard try self.type(of: right) == type else {
                    throw SubscriptionFault(
                        at: place + 1, "this is not a \(type.rawValue), as what it is compared with")
                }
                guard comparison == .equal || comparison == .notEqual || type != .boolean else {
                    throw SubscriptionFault(at: place + 1, "booleans are compared by == and != only")
                }
                guard comparison != .startsWith || type == .text else {
                    throw SubscriptionFault(at: place + 1, "startsWith compares texts")
                }
            case .isOneOf(let operand, let list):
                let type = try type(of: operand)
                for element in list {
                    let place = positions.first ?? 0
                    guard try self.type(of: element) == type else {
                        throw SubscriptionFault(at: place + 1, "this is not a \(type.rawValue), as what is looked for")
                    }
                }
            case .and(let left, let right), .or(let left, let right):
                try check(left)
                try check(right)
            case .not(let filter):
                try check(filter)
            }
        }

        private mutating func type(of operand: SubscriptionFilter.Operand) throws(SubscriptionFault) -> SubscriptionType
        {
            let place = positions.popFirst() ?? 0
            switch operand {
            case .attribute(let name):
                guard let found = attributes[name] else {
                    throw SubscriptionFault(at: place + 1, "there is no attribute \(name)")
                }
                return found.type
            case .parameter(let name):
                guard let found = parameters[name] else {
                    throw SubscriptionFault(at: place + 1, "there is no parameter \(name)")
                }
                return found.type
            case .literal(let value):
                return value.type
            }
        }
    }
}
