// A stand-in for Foundation's headers, with the declarations that the check needs.
@import ObjectiveC;
#define nil ((id)0)

@interface NSString : NSObject
- (instancetype)stringByAppendingPathComponent:(NSString *)name;
@end

@interface NSMutableArray : NSObject
- (void)addObject:(id)object;
@end

@interface NSDictionary : NSObject
- (id)objectForKeyedSubscript:(id)key;
@end

@interface NSURL : NSObject
+ (instancetype)fileURLWithPath:(NSString *)path;
@end

@interface NSNotification : NSObject
@property(readonly) NSString *name;
@property(readonly) NSDictionary *userInfo;
@end
