/// The value of one subscription parameter, as a device sets it or a user keeps it on the server.
package struct DeviceParameter: Hashable, Sendable {
    package var bizType: BizType
    package var name: String
    /// Nil: the value that was there is taken away.
    package var value: SubscriptionValue?

    package init(bizType: BizType, name: String, value: SubscriptionValue?) {
        self.bizType = bizType
        self.name = name
        self.value = value
    }
}

extension [DeviceParameter] {
    /// The values for one business type, by name.
    package func values(of bizType: BizType) -> SubscriptionValues {
        var values = SubscriptionValues()
        for parameter in self where parameter.bizType == bizType { values[parameter.name] = parameter.value }
        return values
    }
}
