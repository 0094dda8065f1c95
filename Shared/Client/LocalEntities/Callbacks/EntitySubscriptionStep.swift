/// A change of an entity type's subscription.
enum EntitySubscriptionStep: Sendable {
    case subscribe
    case suspend
    case resume
    case unsubscribe

    func notifySuccess(of typeName: String, _ handler: any EntityHandler) {
        switch self {
        case .subscribe: handler.onSubscribeSuccess(typeName)
        case .suspend: handler.onSuspendSubscriptionSuccess(typeName)
        case .resume: handler.onResumeSubscriptionSuccess(typeName)
        case .unsubscribe:
            handler.onUnsubscribeSuccess(typeName)
            handler.onSubscriptionEnd(typeName)
        }
    }

    func notifyFailure(_ failure: EntityError, of typeName: String, _ handler: any EntityHandler) {
        switch self {
        case .subscribe: handler.onSubscribeFailure(typeName, failure)
        case .suspend: handler.onSuspendSubscriptionFailure(typeName, failure)
        case .resume: handler.onResumeSubscriptionFailure(typeName, failure)
        case .unsubscribe: handler.onUnsubscribeFailure(typeName, failure)
        }
    }
}
