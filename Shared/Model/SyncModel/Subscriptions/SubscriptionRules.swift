/// The parsed and checked filter, attributes and parameters of a configuration.
package struct SubscriptionRules: Hashable, Sendable {
    /// The declaration of one name.
    package struct Declaration: Hashable, Sendable {
        package var type: SubscriptionType
        /// For a parameter: its value when neither the device nor the user has set one.
        package var defaultValue: SubscriptionValue?
    }

    /// A nil value means: every oplog is for every receiver.
    package let filter: SubscriptionFilter?
    /// The filter's source text without surrounding white space.
    package let filterText: String
    package let attributes: [String: Declaration]
    package let parameters: [String: Declaration]

    /// Parses and checks all three parts: names in the filter must be declared, and compared operands must have one
    /// type.
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
            // The operands in the tree have the order in which they were read.
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

    /// The fault in the attributes of a push, as a sentence; nil if they match the declarations.
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

    /// The filter with its parameter values. Values of the device take precedence over the user's values on the server,
    /// and those over the defaults. A value with another type than declared is ignored.
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
    /// Checks the types of a filter's operands, with their positions.
    private struct TypeCheck {
        let attributes: [String: Declaration]
        let parameters: [String: Declaration]
        /// The positions of the operands that are not checked yet.
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

/// The source texts of a configuration's filter, attributes and parameters.
package struct SubscriptionText: Hashable, Sendable {
    /// The filter; empty: every oplog is for every receiver.
    package var filter: String
    /// The attributes that oplogs may have: `region text, price number`.
    package var attributes: String
    /// The parameters that the filter may use: `region text = "north", max number`.
    package var parameters: String

    package init(filter: String = "", attributes: String = "", parameters: String = "") {
        self.filter = filter
        self.attributes = attributes
        self.parameters = parameters
    }

    /// No filter and no declarations.
    package static let none = SubscriptionText()
}

/// Why a filter or a declaration is invalid.
package struct SubscriptionFault: Error, Hashable, Sendable {
    /// The character at which the fault was found, from 1 on.
    package var position: Int
    /// The fault, as a sentence for the author.
    package var reason: String

    package init(at position: Int, _ reason: String) {
        self.position = position
        self.reason = reason
    }
}

/// The Sync IDs of an instance that have, or ever had, a filter.
package struct FilteredTypes: Hashable, Sendable {
    package var bizTypes: [BizType]
    /// Changes when a filter or its declarations change.
    package var digest: Int

    package init(bizTypes: [BizType] = [], digest: Int = 0) {
        self.bizTypes = bizTypes
        self.digest = digest
    }

    /// Reads the configurations of one instance.
    package init(_ configurations: [SyncConfiguration]) {
        let filtered = configurations.filter(\.isFiltered).sorted { $0.bizType.text.precedes($1.bizType.text) }
        bizTypes = filtered.map(\.bizType)
        var hasher = Hasher()
        for configuration in filtered {
            hasher.combine(configuration.bizType)
            hasher.combine(configuration.kind)
            hasher.combine(configuration.isMultiDevice)
            hasher.combine(configuration.subscription)
        }
        digest = filtered.isEmpty ? 0 : hasher.finalize()
    }
}
